"""Boilerplate, and learnings that sound like it: a greeting may stay, a learning must."""

from __future__ import annotations

from datetime import date

import pytest

from echod.memory.findings import read_findings
from echod.memory.findings.sections import is_boilerplate


@pytest.mark.parametrize(
    "text",
    [
        "Here are my findings:",
        "Here is what I found while reviewing the branch:",
        "Here's what I found during the review:",
        "Sure! Here are the key learnings from this session.",
        "Below are the patterns and learnings I noticed:",
        "The following learnings were identified during the review:",
        "I have completed the review of the payment module. Here are my findings:",
        "I've documented the findings below.",
        "Let me know if you need anything else!",
        "Please let me know if you have any questions or would like more details.",
        "Feel free to ask if you have questions.",
        "Hope this helps.",
        "That's all. Thanks!",
        "*No echoes yet.*",
        "No findings.",
        "End of findings",
        "Would you like me to continue?",
        "I\u2019m happy to elaborate.",
    ],
)
def test_this_is_not_a_finding(text: str) -> None:
    assert is_boilerplate(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Here are my findings: sessions must be awaited.",
        "Here is the fix for the pool.",
        "Great care is needed with the pool.",
        "Done, but the cache was stale.",
        "Let me know if `close()` is wrong.",
        "Feel free to use the cache directly.",
        "I have completed the migration, which fails without a lock.",
        "I've found that the pool leaks.",
        "The findings of the audit were wrong.",
        "That's all the retries there are: 3.",
        "Thanks to the lock nothing is lost.",
        "No learnings survive a restart without a flush.",
        "These will be lost on restart.",
        "Sure, but only in tests.",
    ],
)
def test_this_may_be_a_learning(text: str) -> None:
    assert not is_boilerplate(text)


@pytest.mark.parametrize(
    "text",
    [
        "## Befunde\n\nKeine Fehler gefunden.\n",
        "## Constats\n\nAucune erreur détectée.\n",
        "No se encontraron errores.\n",
        "Nenhum erro encontrado.\n",
        "Nessun errore rilevato.\n",
        "Geen fouten gevonden.\n",
        "Ошибок не найдено.\n",
        "Nie znaleziono błędów.\n",
        "Hata bulunamadı.\n",
        "没有发现错误。\n",
        "不具合は見つかりませんでした。\n",
        "오류가 발견되지 않았습니다.\n",
        "---\nagent: x\n---\n\nNothing to report.\n",
        "### [2026-03-01] Pattern: None\n- **layer**: inscribed\n- None.\n",
        "- [x] No errors found\n- [x] No regressions\n",
        "Total issues: 0\nCritical: 0\n",
        "I checked the loader and found nothing.\n",
        "The audit found no defects.\n",
    ],
)
def test_a_report_of_nothing_is_no_learning_in_any_language_or_form(text: str) -> None:
    assert read_findings(text.encode(), agent="x", file_date=date(2026, 3, 2)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Keine Tests laufen ohne Netz, also zuerst den Dienst starten.\n",
        "Aucun worker ne survit au fork sans nouveau pool.\n",
        "没有缓存的查询会超时，所以先预热。\n",
        "I checked the loader and found no lock around the cache, so two runs mix.\n",
    ],
)
def test_a_claim_that_begins_like_a_report_of_nothing_is_a_learning(text: str) -> None:
    assert len(read_findings(text.encode(), agent="x", file_date=date(2026, 3, 2))) == 1
