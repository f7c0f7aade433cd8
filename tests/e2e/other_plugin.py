"""A server that gives its clients another module: the one in the directory `plugin` beside SM_HOME.

Run in place of `sm server run`.
"""

from __future__ import annotations

import os
from pathlib import Path

from sm.bootstrap import serve
from sm.providers.claude import adapter

if __name__ == "__main__":
    plugin = Path(os.environ["SM_HOME"]).parent / "plugin"
    adapter.plugin_directory = lambda: plugin
    serve()
