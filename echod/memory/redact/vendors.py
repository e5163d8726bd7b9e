"""Find tokens of the many services whose tokens have a form of their own but no kind of their own.

`patterns` has the common ones. A pattern here is compiled when its prefix or anchor is in a text for the first time,
because compiling all of them would delay every command. To add a service, add one line to a table and one example to
the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from echod.memory.redact.spans import Secret, find_all, without_overlaps

_UUID = r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"
_DISCORD = "discord.com/api/webhooks/ discordapp.com/api/webhooks/"
# The beginnings of "-----BEGIN ... PRIVATE" in base64; a certificate has another one and is public.
_ARMOR = "LS0tLS1C" + "RUdJTi"  # split, since the product finds it in its own source
_ENCODED_KEY = (
    "(?:BSU0EgUFJJVkFUR|BQUklWQVRF|BFQyBQUklWQVRF|BEU0EgUFJJVkFUR|BPUEVOU1NIIFBSSVZBVE|BFTkNSWVBURUQgUFJJVkFUR"
    "|BQR1AgUFJJVkFUR)"
)
_CROSSED_OUT = r"(?![A-Za-z0-9_-]{0,12}[xX]{6})"
_WORD_BEFORE = re.compile(r"[A-Za-z0-9]")
_TOKEN_BEFORE = re.compile(r"[A-Za-z0-9_.~-]")

# The kind, the prefixes, and the pattern of the rest, which must not end within a longer word.
PREFIXED_FORMS: tuple[tuple[str, str, str], ...] = (
    ("private-key", _ARMOR, rf"{_ENCODED_KEY}[A-Za-z0-9+/=]{{8,}}"),  # armor in base64, as in kubeconfig
    ("api-key", "bot", r"[0-9]{8,10}:[A-Za-z0-9_-]{35}"),
    ("api-key", _DISCORD, r"[0-9]{17,20}/[A-Za-z0-9_-]{60,}"),
    ("api-key", "ATATT3x ATCTT3x ATBB ATCTT3", r"[A-Za-z0-9_=-]{24,}"),
    ("api-key", "sb_secret_ sbp_", r"[A-Za-z0-9_-]{20,}"),
    ("api-key", "AQ.", r"[A-Za-z0-9_-]{35,}"),
    ("api-key", "pplx-", r"[A-Za-z0-9]{32,}"),  # Perplexity
    ("api-key", "nvapi-", r"[A-Za-z0-9_-]{40,}"),  # NVIDIA
    ("api-key", "pcsk_ csk-", r"[A-Za-z0-9_]{40,}"),  # Pinecone, Cerebras
    ("api-key", "tvly-", r"(?:(?:dev|prod)-)?[A-Za-z0-9_-]{30,}"),  # Tavily
    ("api-key", "tgp_v1_ jina_ apify_api_ napi_", r"[A-Za-z0-9_-]{30,}"),  # Together, Jina, Apify, Neon
    ("api-key", "lsv2_pt_ lsv2_sk_", r"[a-f0-9]{32}_[a-f0-9]{10}"),  # LangSmith
    ("api-key", "phx_", r"[A-Za-z0-9_]{30,}"),  # PostHog, personal
    ("api-key", "NRAK- PMAK-", r"[A-Za-z0-9-]{27,}"),  # New Relic, Postman
    ("api-key", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=-]{40,}"),  # Sentry
    ("api-key", "sqp_ squ_ sqa_", r"[a-f0-9]{40}"),  # SonarQube
    ("api-key", "pul-", r"[a-f0-9]{40}"),  # Pulumi
    ("api-key", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{38,}"),  # Doppler
    ("api-key", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.-]{30,}"),  # PlanetScale
    ("api-key", "nfp_ nfc_ nfo_ nfu_ nfb_", r"[A-Za-z0-9]{36,}"),  # Netlify
    ("api-key", "rnd_", r"[A-Za-z0-9]{24,}"),  # Render
    ("api-key", "fm1r_ fm2_ fo1_", r"[A-Za-z0-9_+/=-]{38,}"),  # Fly.io
    ("api-key", "HRKU-", r"[A-Za-z0-9_-]{36,}"),  # Heroku
    ("api-key", "rubygems_", r"[a-f0-9]{48}"),  # RubyGems
    ("api-key", "CLOJARS_", r"[a-z0-9]{60}"),  # Clojars
    ("api-key", "oy2", r"[a-z0-9]{43}"),  # NuGet
    ("api-key", "AKCp", r"[A-Za-z0-9]{40,}"),  # Artifactory
    ("api-key", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{36,}"),  # CircleCI
    ("api-key", "bkua_", r"[a-f0-9]{40}"),  # Buildkite
    ("api-key", "dt0c01. dt0s01. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),  # Dynatrace
    ("api-key", "xkeysib- xsmtpsib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),  # Brevo
    ("api-key", "key-", r"[a-f0-9]{32}"),  # Mailgun
    ("api-key", "sq0atp- sq0csp-", r"[A-Za-z0-9_-]{22,}"),  # Square
    ("api-key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),  # Resend
    ("api-key", "pat-na1- pat-eu1-", r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),  # HubSpot
    ("api-key", "CFPAT-", r"[A-Za-z0-9_-]{40,}"),  # Contentful
    ("api-key", "sk.eyJ tk.eyJ", r"[A-Za-z0-9_-]{20,2000}\.[A-Za-z0-9_-]{20,}"),  # Mapbox
    ("api-key", "EAACEdEose0cBA EAAG EAAB", r"[A-Za-z0-9]{36,}"),  # Meta
    ("api-key", "dbtc_ dbtu_", r"[A-Za-z0-9_-]{36,}"),  # dbt
    ("api-key", "rdme_", r"[a-z0-9]{70}"),  # ReadMe
    ("api-key", "tfp_", r"[A-Za-z0-9_-]{40,}"),  # Typeform
    ("api-key", "glffct- glwt- GR1348941", r"[A-Za-z0-9_-]{20,}"),  # GitLab, other kinds
    ("api-key", "LTAI", r"[A-Za-z0-9]{16,26}"),  # Alibaba Cloud
    ("api-key", "FLWSECK_TEST- FLWSECK-", r"[A-Za-z0-9-]{32,}"),  # Flutterwave
    ("api-key", "PMAT-", r"[A-Z0-9]{26}"),  # Postman collections
    ("api-key", "access-sandbox- access-production- access-development-", _UUID),  # Plaid
    ("api-key", "secret_", r"[A-Za-z0-9]{43}"),  # Notion, before 2024
    ("api-key", "signkey-prod- signkey-test-", r"[a-f0-9]{40,}"),  # Inngest
    ("api-key", "hooks.zapier.com/", r"hooks/catch/[0-9]{4,12}/[A-Za-z0-9]{6,}"),  # Zapier
    ("api-key", "maker.ifttt.com/", r"(?:use|trigger/[\w-]{1,64}/(?:json/)?with/key)/[A-Za-z0-9_-]{20,}"),  # IFTTT
)

# The kind, a part that every token of the form contains, and its pattern, which must not be within a longer word.
ANCHORED_FORMS: tuple[tuple[str, str, str], ...] = (
    ("secret", "Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{28,45}"),  # Azure app registrations
    ("api-key", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    *(("api-key", f"-us{digit}", rf"[0-9a-f]{{32}}-us{digit}[0-9]?") for digit in range(1, 10)),  # Mailchimp
    ("api-key", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}"),  # HCP Terraform
    ("api-key", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),  # Airtable
    ("api-key", ".", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}"),  # Discord bots
    ("api-key", ":APA91b", r"[A-Za-z0-9_-]{6,12}:APA91b[A-Za-z0-9_-]{100,200}"),  # Firebase messaging
    ("api-key", "access_token$", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}"),  # PayPal
)


class VendorForm(NamedTuple):
    """One prefix with the pattern of the rest; or, with `anchored`, a text to look for and the whole pattern."""

    kind: str
    key: str
    source: str
    anchored: bool


VENDOR_FORMS = (
    *(
        VendorForm(kind, prefix, rf"(?>{_CROSSED_OUT}(?:{rest}))(?![A-Za-z0-9_])", anchored=False)
        for kind, prefixes, rest in PREFIXED_FORMS
        for prefix in prefixes.split()
    ),
    *(
        VendorForm(kind, anchor, rf"{pattern}(?![A-Za-z0-9_])", anchored=True)
        for kind, anchor, pattern in ANCHORED_FORMS
    ),
)


@cache
def compiled_form(source: str) -> re.Pattern[str]:
    """Compile the pattern of a service once."""
    return re.compile(source)


def find_vendor_tokens(text: str) -> list[Secret]:
    """Return every token of these services; where two forms fit, the one that starts earlier has precedence."""
    forms = [form for form in VENDOR_FORMS if form.key in text]
    return without_overlaps(secret for form in forms for secret in _matches(form, text))


def _matches(form: VendorForm, text: str) -> Iterator[Secret]:
    pattern = compiled_form(form.source)
    if form.anchored:
        # A lookbehind at the start of the pattern would make the search ten times as slow.
        for token in pattern.finditer(text):
            if not (token.start() and _TOKEN_BEFORE.match(text, token.start() - 1)):
                yield Secret(form.kind, *token.span())
        return
    done = 0
    for at in find_all(text, form.key):
        if at < done or (at and _WORD_BEFORE.match(text, at - 1)):
            continue
        match = pattern.match(text, at + len(form.key))
        if match is not None:
            done = match.end()
            yield Secret(form.kind, at, done)
