"""The `plant` script, and `python -m plant_cli` (what `accelerate launch -m plant_cli …`
starts).
"""

import signal


def main() -> None:
    """Entry point. Until there is somebody to explain it, Ctrl-C ends the process as it ends
    any other: without a trace.
    """
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from plant_cli.cli.failures import find_limit, run_watched

    def work() -> None:
        from plant_cli.main import main as run

        signal.signal(signal.SIGINT, handler)
        run()

    limit = find_limit()
    if limit is None:
        work()
    else:
        run_watched(work, limit)


if __name__ == "__main__":
    main()
