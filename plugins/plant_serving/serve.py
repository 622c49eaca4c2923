"""`plant serve`: trained models behind HTTP, with a web page."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from plant_cli.api import Result, StageContext, UsageError
from plant_cli.data.files import read_size
from plant_serving import ServeOptions
from plant_serving.application import build_server
from plant_serving.feedback_file import FeedbackFile
from plant_serving.front_door import Limits
from plant_serving.served_models import open_models, renew
from plant_serving.service import Service
from plant_serving.web_server import bind, is_loopback, run_server

TOKEN = "PLANT_TOKEN"
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")


def run(context: StageContext, options: ServeOptions) -> Result:
    """Answer requests until a signal ends the server; the runs do not change."""
    token, local = _find_token(options), is_loopback(options.host)
    with bind(options.host, options.port) as opened:
        feedback = (
            None
            if options.feedback is None
            else FeedbackFile(Path(options.feedback), context.reporter.warn)
        )
        paths = [Path(run) for run in options.runs] or [context.run_path]
        models = open_models(context.request, paths, context.tag, options.batch_wait / 1000)
        service = Service(models=models, feedback=feedback)
        port = opened.getsockname()[1]
        shown = f"[{options.host}]" if ":" in options.host else options.host
        hosts = frozenset({"localhost", "127.0.0.1", "::1", options.host}) if local else None
        limits = Limits(
            max_bytes=read_size(options.max_bytes),
            timeout=options.timeout,
            concurrency=options.concurrency,
        )
        server = build_server(
            service,
            limits,
            hosts=hosts,
            token=token,
            log=context.reporter.warn,
            origins=_require_origins(options.cors),
        )
        known = "; ".join(
            f"{name}: {len(model.loaded.opened.labels):,} labels" for name, model in models.items()
        )
        context.reporter.note(f"http://{shown}:{port} ({known}); Ctrl-C ends it")
        try:
            run_server(
                server,
                opened,
                options.timeout,
                lambda force: renew(list(models.values()), force=force),
                watch=options.watch,
            )
        finally:
            for model in models.values():
                model.close()
            if feedback is not None:
                feedback.close()
    requests, texts = sum(service.metrics.requests.values()), service.metrics.texts
    context.reporter.note(f"the server ended; requests: {requests:,}, texts: {texts:,}")
    return Result(data={"requests": requests, "texts": texts})


def _find_token(options: ServeOptions) -> str | None:
    """The token; refuse to serve other machines without one."""
    token = options.token or os.environ.get(TOKEN) or None
    if token is None and not is_loopback(options.host) and not options.open:
        raise UsageError(
            "other machines could use the server without a token",
            where=f"--host {options.host}",
            expected=f"a token, in the variable {TOKEN} or with --token",
            todo=f"export {TOKEN}=$(openssl rand -hex 16), or say with --open that everybody may "
            "use it",
        )
    return token


def _require_origins(given: Sequence[str]) -> Sequence[str]:
    """The origins, each as browsers write it."""
    for origin in given:
        if _ORIGIN.fullmatch(origin) is None or origin.endswith((":80", ":443")):
            raise UsageError(
                "this is no origin of a page",
                where=f"--cors {origin}",
                expected="scheme, host in small letters, and the port unless it is the usual one, "
                "without a path",
                todo="give the beginning of the page's address, such as --cors "
                "https://catalogue.example.org",
            )
    return given
