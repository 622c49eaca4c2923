"""The `plant` script, and `python -m plant_cli` (what `accelerate launch -m plant_cli …` starts)."""

import signal


def main() -> None:
    """Entry point. Until there is somebody to explain it, Ctrl-C ends the process as it ends any other: without a trace."""
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from plant_cli.main import main as run

    signal.signal(signal.SIGINT, handler)
    run()


if __name__ == "__main__":
    main()
