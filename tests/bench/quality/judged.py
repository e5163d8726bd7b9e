"""The judged list: what a future reader of the made file should find, in order of its weight, before any result was seen.

Each has the words that must stay together in one unit of the text (trap and remedy), and those of the trap alone.
"""

from __future__ import annotations

from typing import NamedTuple


class Judged(NamedTuple):
    """A learning or observation of the made file."""

    written: str  # as it is in the file; of an observation, the title on the first line
    whole: tuple[str, ...]  # regular expressions of the trap and the remedy
    trap: tuple[str, ...]  # those of the trap
    weight: float | None = None  # None: by its place in the list


LEARNINGS = (
    Judged("**Money as float loses cents**: totals in `invoice.py` drift after 40 lines. Always sum `Decimal` and round "
           "once, in `Invoice.total()`.", ("invoice\\.py", "Decimal", "round once"), ("float", "cents")),
    Judged("**`SELECT ... FOR UPDATE` without an order deadlocks**: two workers took the rows of one cart in different "
           "orders. The test never showed it. Sort by primary key before locking.", ("FOR UPDATE", "primary key"),
           ("deadlock", "FOR UPDATE")),
    Judged("**Retries of the payment call charge twice**: the provider answers after our timeout. Send the order id as "
           "`Idempotency-Key` and never retry without it.", ("Idempotency-Key", "retr"), ("charge twice",)),
    Judged("**Naive datetimes break the report at the end of March**: `datetime.now()` in the report job has no zone. Use "
           "`timezone.now()` everywhere and convert in the template.", ("timezone\\.now\\(\\)", "report"),
           ("datetime\\.now\\(\\)",)),
    Judged("**Feature flags are cached for an hour**: a kill switch did nothing during the outage. Read `flags.live()` in "
           "anything that stops damage.", ("flags\\.live\\(\\)", "kill switch"), ("kill switch",)),
    Judged("**The review went through all 14 files**: no surprises, and the plan was followed closely.",
           ("14 files",), ("14 files",)),
    Judged("**Uploads trust the client's content type**: an SVG with script passed as `image/png`. Sniff the bytes with "
           "`magic.from_buffer()` and refuse SVG.", ("magic\\.from_buffer", "SVG"), ("content type",)),
    Judged("**`urljoin` drops the last segment without a slash**: every thumbnail was a 404 on staging. Base URLs must end "
           "with `/`; `settings.py` checks it now.", ("urljoin", "must end"), ("urljoin",)),
    Judged("**A migration that adds a NOT NULL column locks `orders` for minutes**: add it nullable, backfill in batches "
           "of 5,000, then set NOT NULL in a later release.", ("NOT NULL", "backfill"), ("NOT NULL", "lock")),
    Judged("**Celery tasks start before the transaction commits**: the worker did not find the order. Use "
           "`transaction.on_commit()` for every `delay()`.", ("on_commit", "delay\\(\\)"), ("before the transaction",)),
    Judged("**`len(queryset)` loads every row**: the admin page took 40 seconds. Use `queryset.count()` unless the rows are "
           "needed anyway.", ("queryset\\.count\\(\\)", "len\\(queryset\\)"), ("len\\(queryset\\)",)),
    Judged("**Two rounds were enough this time**: the second one found little.", ("Two rounds",), ("Two rounds",)),
    Judged("**`zip()` hid a missing price**: the lists had different lengths and the last item was free. Pass "
           "`strict=True` wherever lengths must agree.", ("strict=True", "zip"), ("zip\\(\\)",)),
    Judged("**Logs held full card numbers**: the exception's repr contains the request body. Redact in "
           "`logging_filters.py`, not at the call sites.", ("logging_filters\\.py", "redact"), ("card numbers",)),
    Judged("**`except Exception` around the mail loop lost 300 mails**: one bad address ended the batch silently. Catch "
           "`SMTPRecipientsRefused` for each recipient and continue.", ("SMTPRecipientsRefused", "each recipient"),
           ("mail loop", "lost")),
    Judged("**Docker's cache kept an old wheel**: `pip install .` saw no change of the lock file. Copy `uv.lock` before the "
           "source, and pin the base image by digest.", ("uv\\.lock", "digest"), ("old wheel",)),
    Judged("**Snapshot tests pass with an empty page**: the selector matched nothing. Assert `page.locator('h1')` before "
           "every snapshot.", ("page\\.locator", "Assert"), ("empty page",)),
    Judged("**Reviewers agreed on most points**: it was a pleasant review.", ("pleasant",), ("pleasant",)),
    Judged("**The search index lags by a refresh**: tests that read at once are flaky. Call `index.refresh()` in tests, "
           "never `sleep`.", ("index\\.refresh\\(\\)", "never"), ("index lags", "flaky")),
    Judged("**`ON CONFLICT DO NOTHING` returns no row**: `RETURNING id` was empty for existing users and the code created "
           "a second profile. Select after it, or use `DO UPDATE`.", ("DO UPDATE", "RETURNING"), ("DO NOTHING",)),
    Judged("**Locale decides how `float('1,5')` fails**: imports from German files lost prices. Parse with "
           "`babel.numbers.parse_decimal(locale=...)`.", ("parse_decimal", "import"), ("locale", "price")),
    Judged("**The health check answered while migrations ran**: traffic hit a half-migrated schema. `readyz` must compare "
           "`django_migrations` with the code.", ("readyz", "django_migrations"), ("health check",)),
    Judged("**A regex with nested quantifiers hung the worker**: the user name pattern was `(a+)+$`. Use `re2` for input "
           "of users, and limit it to 200 characters.", ("re2", "200 characters"), ("nested quantifiers",)),
    Judged("**Documentation was updated as usual**: nothing special.", ("nothing special",), ("nothing special",)),
)  # fmt: skip

OBSERVATIONS = (
    Judged("Fix PAY-004: webhook signature\nFile: payments/webhook.py\\nFinding: PAY-004 (P1) \u2014 the signature is "
           "compared with `==`, so its time leaks.\\nFix: Use `hmac.compare_digest()` on bytes.",
           ("webhook", "compare_digest"), ("webhook", "signature")),
    Judged("Fix SEC-012: open redirect\nSEC-012: `next` of the login form is not validated. Reject hosts other than ours with "
           "`url_has_allowed_host_and_scheme()`. File: accounts/views.py:88.",
           ("url_has_allowed_host_and_scheme", "next"), ("redirect",)),
    Judged("Fix the csv export\nexport/csv.py writes cells that begin with `=`. Prefix them with an apostrophe, because "
           "spreadsheets run them as formulas.", ("export", "apostrophe"), ("csv",)),
    Judged("Fix CI-003: flaky upload test\nThe test binds port 8080 and fails in parallel runs. Bind port 0 and read the "
           "number from `server.getsockname()`.", ("port 0", "getsockname"), ("8080",)),
    Judged("Fix DB-007: missing index\norders(customer_id, created_at) has no index and the list page scans 2 million rows. "
           "Add it with `CREATE INDEX CONCURRENTLY` outside of a transaction.", ("CONCURRENTLY", "orders"), ("index",)),
    Judged("Fix OPS-002: log rotation\nlogrotate moved the file while gunicorn kept it open. Use `copytruncate` or send "
           "USR1 in postrotate.", ("copytruncate|USR1", "gunicorn"), ("logrotate",)),
    Judged("Fix API-011: pagination\nOffsets skip items when rows are inserted. Replace `offset` by a cursor on (created_at, "
           "id) in api/pagination.py.", ("cursor", "pagination"), ("offset",)),
    Judged("Fix UI-020: double submit\nThe order button is not disabled after the click. Disable it in `onSubmit` and send "
           "a form token that the server accepts once.", ("onSubmit", "token"), ("double submit",)),
    Judged("Fix MAIL-005: bounces\nReturn-Path is the noreply address, so bounces are lost. Set `ENVELOPE_FROM` per "
           "tenant in mail/backend.py.", ("ENVELOPE_FROM", "bounces"), ("bounces",)),
    Judged("Fix SYNC-001: clock skew\nmobile/sync.ts compares server times with `Date.now()`. Never compare clocks: send "
           "the server's `revision` number instead.", ("revision", "sync\\.ts"), ("clock",)),
    Judged("Fix CACHE-009: tenant leak\nThe cache key in templates/cache.py lacks the tenant, which shows another "
           "customer's prices. Add `tenant.id` to `make_key()`. P1.", ("make_key", "tenant"), ("cache key",)),
    Judged("Fix TEST-014: frozen time\nfreezegun does not patch `time.monotonic()` used in limiter.py. Inject a clock "
           "instead.", ("limiter\\.py", "clock"), ("freezegun",)),
)  # fmt: skip

FILLER = frozenset({"14 files", "Two rounds", "pleasant", "nothing special"})
"""The traps of learnings that nobody needs. They have no weight."""
