"""E-mail addresses in evidence name people and teach nothing, unless the learning is about e-mail."""

from __future__ import annotations

import pytest

from echod.memory.redact import find_email_in_evidence, redact, redact_entry

ENTRY = """### [2026-01-05] Pattern: {title}
- **layer**: inscribed
- **source**: reviewer
- **evidence**: {evidence}
- {learning}
"""


def entry(evidence: str, *, title: str = "Retries hide timeouts", learning: str = "Log every retry.") -> str:
    return ENTRY.format(title=title, evidence=evidence, learning=learning)


@pytest.mark.parametrize(
    ("evidence", "redacted"),
    [
        ("reported by jane.doe@example.com", "reported by [REDACTED:email]"),
        (
            "src/api.py:12 (jane@example.org, joe+x@mail.example.co.uk)",
            "src/api.py:12 ([REDACTED:email], [REDACTED:email])",
        ),
        ("<jane@example.com>", "<[REDACTED:email]>"),
        ("`jane_doe@sub.example.com`.", "`[REDACTED:email]`."),
        ("mailto:jane@example.com", "mailto:[REDACTED:email]"),
    ],
)
def test_addresses_in_evidence_are_redacted(evidence: str, redacted: str) -> None:
    assert redact_entry(entry(evidence)).text == entry(redacted)


@pytest.mark.parametrize(
    "evidence",
    [
        "src/api.py:12",
        "git@github.com:org/repo.git",
        "pkg@1.2.3 and @scope/pkg@2.0.0",
        "icon@2x.png",
        "actions/checkout@v4",
        "user@host without a domain",
        "@decorator.property",
        "https://example.com/@name.page",
    ],
)
def test_an_at_sign_alone_is_not_an_address(evidence: str) -> None:
    assert find_email_in_evidence(entry(evidence)) == ()


@pytest.mark.parametrize(
    ("title", "learning"),
    [
        ("E-mail addresses need a plus sign", "Keep it."),
        ("Parsing", "The email parser drops the tag."),
        ("Bounces", "SMTP servers answer 550."),
        ("Validation", "A mailbox may be quoted."),
        ("Senders", "The DKIM signature breaks."),
    ],
)
def test_addresses_stay_where_the_learning_is_about_email(title: str, learning: str) -> None:
    text = entry("jane@example.com", title=title, learning=learning)

    assert redact_entry(text).text == text


def test_evidence_that_speaks_of_mail_does_not_make_the_learning_about_mail() -> None:
    assert "[REDACTED:email]" in redact_entry(entry("e-mail of jane@example.com")).text


def test_addresses_outside_evidence_stay() -> None:
    text = entry("src/api.py", learning="The owner is team@example.com.")

    assert redact_entry(text).text == text


def test_evidence_may_go_on_in_the_next_lines() -> None:
    text = entry("src/api.py,\n  seen by jane@example.com\n  and joe@example.com")

    assert redact_entry(text).text == entry("src/api.py,\n  seen by [REDACTED:email]\n  and [REDACTED:email]")


@pytest.mark.parametrize(
    "field", ["- **Evidence**:", "**Evidence**:", "* evidence:", "Evidence:", "- **evidence:**", "> - **evidence**:"]
)
def test_evidence_is_known_however_it_is_written(field: str) -> None:
    assert redact_entry(f"## A\n{field} jane@example.com\n").text == f"## A\n{field} [REDACTED:email]\n"


def test_an_entry_loses_secrets_and_addresses_at_once() -> None:
    text = entry("jane@example.com set password=hunter2x in https://bob:s3cr3t@example.com/x")

    assert redact_entry(text).text == entry(
        "[REDACTED:email] set password=[REDACTED:password] in https://bob:[REDACTED:connection-string]@example.com/x"
    )


def test_a_whole_file_keeps_its_addresses() -> None:
    text = entry("jane@example.com")

    assert redact(text).text == text
