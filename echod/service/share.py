"""Where the templates of the service files are: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from echod.service.errors import ServiceError


def template(kind: str, name: str) -> str:
    """The text of a template, as ("systemd", "echod.service").

    Raises:
        ServiceError: the installation lacks it.
    """
    package = files("echod")
    places = [package / "_share" / kind / name]
    if isinstance(package, Path):
        places.append(package.parent / kind / name)  # an editable installation has no copy of its own
    for place in places:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise ServiceError(f"This installation of echod lacks its template {kind}/{name}; install it again.")
