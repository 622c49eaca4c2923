"""`plant serve`: trained models behind HTTP, for people and for programs.

A page where texts are typed, suggestions looked at and decided upon; a JSON API with its schema;
the paths of Annif's API; metrics for a monitor. Texts of several requests are scored together. Runs
are only read; what people decide goes to a file that `plant review import` reads, and headings that
they miss go to one that `plant review proposals` lists.

It needs the extra `serve` (fastapi, uvicorn, python-multipart, py3langid) and, of the core, opened
models (`scoring`) and run folders (`runs`). The page is plain HTML, CSS and JavaScript in `page/`:
nothing is built, nothing is fetched from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal

from plant_cli.api import Options, StageContext, StageSpec, hookimpl, option
from plant_cli.api.errors import missing_package
from plant_cli.api.options import SIZE_PATTERN, everyday


class ServeOptions(Options):
    """Options of `serve`."""

    runs: list[str] = everyday(
        [],
        "Run folders whose models are served (default: that of --run).",
        argument=True,
        path=True,
    )
    host: str = everyday(
        "127.0.0.1",
        "The address to listen at; the default is reached from this machine alone.",
        value="ADDRESS",
    )
    port: int = everyday(8000, "The port; 0: any free one.", ge=0, le=65535)
    token: str | None = everyday(
        None,
        "Clients must send it (Authorization: Bearer TOKEN). The variable PLANT_TOKEN is safer: "
        "others can see flags.",
        min_length=8,
    )
    open: bool = option(False, "Let other machines ask without a token.")
    cors: tuple[str, ...] = option(
        (),
        "A site whose pages may ask from a browser, such as https://catalogue.example.org.",
        value="ORIGIN",
    )
    queue: str | None = everyday(
        None,
        "Texts that people decide on, on the page: a file that `plant suggest` reads.",
        path=True,
        value="FILE",
    )
    order: Literal["doubt", "file"] = everyday(
        "doubt",
        "The order of the queue: documents first whose labels a person will change most, or "
        "as in the file.",
    )
    people: int = everyday(1, "How many people decide on each document of the queue.", ge=1)
    feedback: str | None = everyday(
        None,
        "Append decisions to this file: what people accept and reject (with --queue new.csv: "
        "new.feedback.jsonl).",
        min_length=1,
        value="FILE",
    )
    watch: bool = everyday(
        False, "Load a model anew once its run was trained again. The signal HUP does it at once."
    )
    max_bytes: str = option("2MB", "The longest request, such as 500KB.", pattern=SIZE_PATTERN)
    timeout: float = option(30.0, "Seconds that a request may take.", gt=0, le=3600)
    concurrency: int = option(
        100, "Requests that may wait at once; more are told to come again (503).", ge=1
    )
    batch_wait: float = option(
        0.0,
        "Milliseconds that a text waits for others, so that they are scored together.",
        ge=0,
        le=1000,
    )


class ProposalOptions(Options):
    """Options of `review proposals`."""

    files: list[str] = everyday(
        ...,
        "Files of proposals that `plant serve` keeps (.proposals.jsonl).",
        argument=True,
        path=True,
        min_length=1,
    )


def require_server(context: StageContext, options: ServeOptions) -> None:
    """Refuse, before anything is loaded, where the server's packages are not installed."""
    for name in ("fastapi", "uvicorn", "python_multipart", "py3langid"):
        if find_spec(name) is None:
            raise missing_package(
                name, "which the server is made with", "serve", where="plant serve"
            )


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """The server, and what people proposed on its page."""
    return [
        StageSpec(
            name="serve",
            group="Begin",
            summary="Trained models behind HTTP: a web page, a JSON API, and the paths of "
            "Annif's API.",
            options=ServeOptions,
            run="plant_serving.serve:run",
            check="plant_serving:require_server",
            help="The runs are only read. Ctrl-C or the signal TERM ends the server after the "
            "requests in progress are answered.",
            sections=("machine",),
            writes=False,
            takes=("tag",),
            examples=(
                "plant serve",
                "plant serve --queue new.csv",
                "plant serve titles abstracts --feedback feedback.jsonl --watch",
            ),
        ),
        StageSpec(
            name="review proposals",
            summary="Headings that people proposed on the page, since the vocabulary lacks them.",
            options=ProposalOptions,
            run="plant_serving.proposals:list_proposals",
            help="An editor adds a heading to the vocabulary; `plant labels apply` takes it into a "
            "model.",
            writes=False,
            needs_run=False,
            examples=("plant review proposals new.proposals.jsonl",),
        ),
    ]
