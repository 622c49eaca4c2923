"""`plant serve`: trained models behind HTTP, with a web page."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from plant_cli.api import Result, StageContext, UsageError
from plant_cli.data.files import read_size, refuse_replacing
from plant_cli.data.printed_tables import show_count
from plant_cli.data.tables import base_name
from plant_cli.scoring.new_texts import STDIN
from plant_serving import ServeOptions
from plant_serving.application import build_server
from plant_serving.feedback_file import FeedbackFile
from plant_serving.front_door import Limits
from plant_serving.served_models import open_models, renew
from plant_serving.served_queues import ServedQueues
from plant_serving.service import Service
from plant_serving.web_server import bind, is_loopback, run_server

TOKEN = "PLANT_TOKEN"
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")


def run(context: StageContext, options: ServeOptions) -> Result:
    """Answer requests until a signal ends the server; the runs do not change."""
    token, local = _find_token(options), is_loopback(options.host)
    kept = _find_feedback(options)
    with bind(options.host, options.port) as opened:
        feedback, proposals = (
            (None, None)
            if kept is None
            else (FeedbackFile(one, context.reporter.warn) for one in (kept, _beside(kept)))
        )
        paths = [Path(run) for run in options.runs] or [context.run_path]
        models = open_models(context.request, paths, context.tag, options.batch_wait / 1000)
        queues = ServedQueues(
            next(iter(models.values())),
            kept,
            order=options.order,
            people=options.people,
            log=context.reporter.warn,
        )
        if options.queue is not None:
            queues.add(options.queue)
        service = Service(models=models, feedback=feedback, queues=queues, proposals=proposals)
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
        for _, queue in queues:
            count = show_count(len(queue.documents), "document")
            context.reporter.note(f"{queue.name}: {count}; decisions go to {kept}")
        try:
            run_server(
                server,
                opened,
                options.timeout,
                lambda force: renew(list(models.values()), force=force),
                watch=options.watch,
            )
        finally:
            queues.close()
            for model in models.values():
                model.close()
            for file in filter(None, (feedback, proposals)):
                file.close()
    requests, texts = sum(service.metrics.requests.values()), service.metrics.texts
    context.reporter.note(f"the server ended; requests: {requests:,}, texts: {texts:,}")
    return Result(data={"requests": requests, "texts": texts})


def _find_feedback(options: ServeOptions) -> Path | None:
    """The file of decisions: with a queue there always is one, beside it."""
    if options.queue == STDIN:
        raise UsageError(
            "standard input cannot be a queue, since the server is started again with the same one",
            where="--queue -",
            expected="a file of texts",
            todo="write them to a file first",
        )
    if options.feedback is not None:
        refuse_replacing(options.feedback, options.queue)
        return Path(options.feedback)
    if options.queue is None:
        return None
    queue = Path(options.queue)
    return queue.with_name(f"{base_name(queue)}.feedback.jsonl")


def _beside(feedback: Path) -> Path:
    """The file of proposed headings."""
    return feedback.with_name(f"{base_name(feedback).removesuffix('.feedback')}.proposals.jsonl")


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
