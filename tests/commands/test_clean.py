from __future__ import annotations

from plant_cli.data.files import name_temporary


def test_what_can_be_made_again_goes_and_results_stay(laboratory):
    laboratory.run("alpha")
    laboratory.run("beta")
    alpha, beta = laboratory.path / "alpha", laboratory.path / "beta"
    record = beta / "stage.json"
    record.write_text(record.read_text().replace('"done"', '"interrupted"'))
    spent = [laboratory.path / "cache", alpha / "checkpoints", laboratory.path / ".beta.failed"]
    needed = beta / "checkpoints"  # --resume goes on from it
    for folder in (*spent, needed):
        folder.mkdir()
        (folder / "data").write_bytes(bytes(1000))
    half = name_temporary(alpha / "alpha.txt")
    half.write_bytes(bytes(500))
    spent.append(half)

    assert laboratory.run("clean", options={"dry_run": True}).summary == {
        "bytes": 3500,
        "removed": 0,
    }
    assert all(path.exists() for path in spent)
    result = laboratory.run("clean")
    assert result.summary == {"bytes": 3500, "removed": 4}
    assert sorted(row[0] for row in result.tables[0].rows) == sorted(
        str(path.relative_to(laboratory.path)) for path in spent
    )
    assert not any(path.exists() for path in spent)
    assert (needed / "data").exists()
    assert (laboratory.text("alpha"), laboratory.text("beta")) == ("3", "3")
    assert laboratory.run("clean").summary == {"bytes": 0, "removed": 0}
