"""The functions of the commands, one module for each family. `cli/declarations` has their options and help.

Each is loaded when its command runs, so that help and usage errors need none of them. Families use each other through
this package, also lazily.
"""

from echod.lazy import lazy_imports

with lazy_imports(__name__):
    from echod.cli.commands import (  # noqa: F401 - the declarations name them
        auto_memory,
        claude,
        config,
        demo,
        doctor,
        entries,
        explain,
        gate,
        global_memory,
        ingest,
        init,
        log,
        memory,
        migrate,
        packs,
        picture,
        projects,
        prune,
        remembrance,
        review,
        run,
        scrub,
        search,
        service,
        session_views,
        sessions,
        show,
        status,
        sync,
        undo,
    )
