"""`kdx serve`: shows sweeps, their tables and their runs in a browser, while they train."""

from typing import Annotated

import typer

from kdx.cli.console import say
from kdx.cli.context import InDatabase
from kdx.cli.serving import Pages, server


def serve(
    context: InDatabase,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Listen on this port; 0 takes a free one.")
    ] = 8123,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="0.0.0.0 lets other machines ask, without a password.")
    ] = "127.0.0.1",
) -> None:
    """Show sweeps in a browser while they train.

    Progress, tables, curves, claims, runs with their logs; nothing can be changed there. Ctrl-C ends it.

    Example: kdx serve --db runs.db
    """
    with context.read():  # a database that cannot be read is refused at once
        pass
    with server(Pages(context), host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        say(f"{context.db} at http://{shown}:{listening.server_port}; Ctrl-C ends it")
        listening.serve_forever()
