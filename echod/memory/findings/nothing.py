"""Recognize text that is no learning: reports that there was nothing, and reports of what was done.

"None.", "No issues found.", "No new learnings this session." are dropped. Only words of a short list may be in such a
sentence, so a claim that begins like one ("No learnings survive a restart without a flush") stays. A text that only
reports what was done ("Reviewed the payment module.") is kept, as traced.
"""

from __future__ import annotations

import re
from functools import cache

from echod.lazy import lazy_pattern

_NOTHING = frozenset(
    re.findall(
        r"[^\s,][^\n,]*",
        """
        none, n/a, na, nil, null, nothing, -, --, \u2013, \u2014, no, zero, 0, not applicable, tbd, todo,
        tba, empty, lgtm, all good,
        all clear, clean, ok, pass, passed, approved, looks good, looks good to me, see above, as above,
        same as above, nothing new,
        nothing to report, nothing to add, nothing found, none found, none so far, none yet,
        none to report, none identified,
        none observed, none noted, none detected, none at this time, none needed, none required,
        no action needed, no action required,
        no changes needed, no changes required, no comment, no comments, [], {}, (none),
        no further comments, good to go, ship it,
        keine, keine befunde, nichts, entf\u00e4llt, aucun, aucune, rien, rien \u00e0 signaler, ras,
        ninguno, ninguna, nada, nenhum, nenhuma,
        nessuno, nessuna, geen, brak, \u043d\u0435\u0442, \u043d\u0435\u043c\u0430\u0454,
        \u0456\u0441\u0442\u043e\u0442\u043d\u0438\u0445 \u043d\u0435\u043c\u0430, yok, kh\u00f4ng c\u00f3,
        tidak ada, \u65e0, \u7121, \u6ca1\u6709, \u306a\u3057, \u7279\u306b\u306a\u3057,
        \u8a72\u5f53\u306a\u3057, \uc5c6\uc74c, \ud574\ub2f9 \uc5c6\uc74c,
        \u0644\u0627 \u064a\u0648\u062c\u062f,
        \u0644\u0627 \u0634\u064a\u0621, \u0915\u094b\u0908 \u0928\u0939\u0940\u0902
        """,
    )
)
_NOUN = (
    r"(?:issues?|problems?|findings?|learnings?|lessons?|concerns?|bugs?|defects?|vulnerabilit(?:y|ies)|warnings?|errors?|blockers?|"
    r"regressions?|gaps?|questions?|suggestions?|recommendations?|comments?|observations?|patterns?|insights?|"
    r"notes?|action items?|"
    r"actions?|follow-?ups?|deviations?|violations?|risks?|entries|items?|results?|todos?|next steps?|echoes|"
    r"updates?|feedback|"
    r"discrepanc(?:y|ies)|inconsistenc(?:y|ies)|changes?|discoveries|surprises|takeaways|anomalies|conflicts|matters|improvements?|"
    r"nits?|things?|decisions?|memories|knowledge|information|worries|red flags?|code smells?|false positives?)"
)
_WORD = (
    r"(?:new|further|other|additional|more|significant|critical|major|minor|high|medium|low|severity|priority|blocking|important|"
    r"notable|noteworthy|serious|severe|obvious|real|actual|open|outstanding|remaining|known|relevant|specific|particular|immediate|"
    r"security|performance|correctness|style|quality|design|architecture|architectural|functional|test|testing|code|review|logic|"
    r"accessibility|reusable|generalizable|durable|lasting|p[0-4]|or|and|and/or|nor|any|such|of note|novel|"
    r"actionable|unexpected|"
    r"worth|recording|persisting|keeping|remembering|reporting|saving|mentioning|noting|to|report|add|record|persist|save|share|note|"
    r"flag|raise|address|fix|found|identified|detected|observed|noted|discovered|reported|seen|raised|recorded|learned|made|present|"
    r"encountered|uncovered|surfaced|remain|needed|required|necessary|were|was|have|has|been|i|we|did|not|find|at|this|that|"
    r"the|in|on|of|for|from|during|with|time|session|sessions|review|run|pass|round|pr|pull|request|diff|change|changeset|changes|"
    r"branch|commit|commits|codebase|code|file|files|module|area|category|task|scope|today|yet|so|far|currently|here|now|it|these|"
    r"those|iteration|cycle|audit|workflow|point|stage|moment|all|my|our|agent|team|role|reviewed|checked|analysis|"
    + _NOUN[3:-1]
    + r")"
)
# Sentences such as "Keine Probleme gefunden." consist of these alone, with one of the first group among them.
_FOREIGN_NEGATIVES = frozenset(
    re.findall(
        r"\S+",
        """
    kein keine keinen keiner keinerlei nichts nicht aucun aucune rien n'a n'ont pas ningún ningun ninguno ninguna nada
    no sin nenhum nenhuma não nao sem nessun nessuno nessuna nulla non geen niets niet inga inget ingen intet inte ikke
    brak nie nic żadnych żadne žádné žádný nebyly nebyl nenalezeny nenalezen nenalezeno neboli не нет ничего нету
    отсутствуют немає нема жодних відсутні yok
        bulunamad\u0131 bulunmad\u0131 không chưa tidak belum nincs nem ei
    niciun nicio nu δεν καμία κανένα لا لم नहीं कोई
    """,
    )
)
_FOREIGN_WORDS = _FOREIGN_NEGATIVES | frozenset(
    re.findall(
        r"\S+",
        """
    befunde befund probleme problem fehler auffälligkeiten erkenntnisse anmerkungen mängel hinweise risiken neue neuen
    neues neuer weitere weiteren kritische kritischen schwerwiegenden gefunden festgestellt entdeckt erkannt vorhanden
    wurden wurde es gab gibt sind haben wir zu berichten melden bei der in dieser diesem prüfung sitzung änderung
    problème problèmes constat constats remarque remarques erreur erreurs anomalie anomalies nouveau nouvelle nouvelles
    apprentissage apprentissages trouvé trouvée trouvés trouvées détecté détectée détectés été a ont n' signalé signaler
    identifié identifiés à de d' dans cette session revue il y
    problema problemas hallazgo hallazgos error errores incidencia incidencias observaciones nuevos nuevas nuevo
    encontró encontraron encontrado encontrados encontrada encontradas detectó detectaron detectado detectados se han
    hay que reportar informar novedades aprendizajes en esta sesión revisión
    achado achados erro erros foram foi novo novos nova novas há a relatar identificado identificados identificada nesta
    sessão revisão
    problemi risultati errori errore difetti difetto rilievi nuovi nuove
    trovato trovati trovata rilevato rilevati rilevata sono stati è stato
    ci da segnalare
    problemen bevindingen bevinding fouten opmerkingen gevonden nieuwe er zijn werden aangetroffen te melden
    fynd resultat fel anmärkningar nya hittades hittade funna inga_nya att rapportera fejl fund fundet funnet feil nye
    at å rapportere
    problemów problemy uwag błędów wyników znaleziono stwierdzono wykryto nowych do zgłoszenia
    problémy chyby nálezy nové
    проблем проблемы ошибок ошибки замечаний замечания находок обнаружено обнаружены найдено найдены выявлено выявлены
    новых новые проблеми помилок зауважень знайдено виявлено нових
    sorun sorunlar hata bulgu bulgular yeni
    vấn đề lỗi nào phát hiện tìm thấy mới có được
    masalah temuan kesalahan ditemukan ada baru yang
    probléma hiba találat találtunk található új ongelmia löytynyt havaintoja virheitä uusia
    probleme_găsite găsite găsit
    πρόβλημα προβλήματα βρέθηκαν βρέθηκε
    توجد مشاكل يوجد أخطاء مشكلة ملاحظات العثور يتم على أي
    समस्या समस्याएँ मिली मिला त्रुटि है
    """,
    )
)
_UNSPACED_NOTHING = lazy_pattern(
    r"(?:本次|本轮|此次|本次审查|本次評審|审查|目前|暂时|暂|暫|尚)?(?:没有|沒有|未|无"
    r"|無)(?:发现|發現|找到|检测到|檢測到|检出|任何|新的?|明显|明顯|严重|嚴重|重大|其他|其它|的)*"
    r"(?:问题|問題|缺陷|错误|錯誤|发现|發現|风险|風險|异常|異常|经验|教训|建议|内容)?"
    r"|(?:新しい|新たな|重大な|特に)*(?:問題|指摘事項|指摘|課題|不具合"
    r"|バグ|エラー|発見|学び|所見)(?:点)?(?:は|が|も)?(?:特に)?"
    r"(?:なし|無し|ありません|ありませんでした|見つかりません|見つかりませんでした"
    r"|見つからなかった|検出されませんでした|ない|なかった)(?:です)?"
    r"|(?:새로운\s*|발견된\s*|특별한\s*|심각한\s*)*(?:문제|문제점|오류|결함"
    r"|이슈|발견 ?사항|지적 ?사항|학습|특이 ?사항)(?:가|이|은|는|점이|점은)?\s*"
    r"(?:없음|없습니다|없었습니다|없다|발견되지\s*않았습니다|발견되지\s*않음|발견되지\s*않았다)"
    r"|ไม่พบ(?:ปัญหา|ข้อผิดพลาด|ข้อบกพร่อง)(?:ใหม่|ใดๆ)?|ไม่มี(?:ปัญหา|ข้อผิดพลาด)?"
)
_MARKS = " \t*_`\"'.,;:!\u3002()[]<>-\u2013\u2014\u2022\u2705\u2714\u2713\U0001f44d\U0001f389"
_MAX_LENGTH = 200
_MAX_FOREIGN_WORDS = 12
_CHECKED_ITEMS = lazy_pattern(r"(?m)^[ \t>]*(?:[-*+\u2022\u2013][ \t]+)?(?:\[[ xX]\][ \t]+)?")

_SECTION_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        critical high medium low major minor blocking blocker blockers severity priority p0 p1 p2 p3 p4 s1
        s2 s3 findings finding
        issues issue problems concerns bugs errors warnings risks gaps questions suggestions
        recommendations comments observations
        learnings learning lessons patterns insights notes nits nitpicks todo todos follow-up follow-ups
        followups follow ups next
        steps step open known outstanding unresolved remaining other additional new significant important
        must should fix nice have
        to false positives action items item deviations regressions limitations security performance
        correctness style quality
        testing tests coverage docs documentation accessibility verdict summary result results review and
        or of the for in
        improvements optional informational info trivial general work decisions blocked dependencies
        changes required vulnerabilities
        defects violations

        befunde erkenntnisse probleme fehler hinweise ergebnisse résultats constats problèmes hallazgos
        problemas resultados achados
        risultati problemi bevindingen problemen problemy uwagi wyniki проблемы замечания находки проблеми
        bulgular sorunlar
        temuan masalah 发现 问题 問題 指摘事項 문제 발견사항
        """,
    )
)
_VERDICT = lazy_pattern(
    r"(?:verdict|status|result|outcome|overall|recommendation|decision|conclusion|assessment|rating)s?\W+"
    r"(?:pass(?:ed)?|approved?|accept(?:ed)?|ok|clean|lgtm|success|done|complete[d]?|no issues|"
    r"fail(?:ed)?|rejected|merge|ship it)",
    re.IGNORECASE,
)
_SEVERITY = lazy_pattern(
    r"\b(?:critical|high|medium|low|major|minor|blocker|blocking|severe|trivial|info|nits?|nitpicks?|p[0-4]|s[1-4]|sev-?[0-4])\b",
    re.IGNORECASE,
)

_DONE_VERBS = (
    r"(?:reviewed|ran|fixed|added|updated|implemented|checked|completed|finished|refactored|created|removed|deleted|renamed|moved|"
    r"merged|committed|pushed|deployed|tested|verified|audited|analy[sz]ed|investigated|wrote|rewrote|read|migrated|upgraded|bumped|"
    r"installed|configured|documented|cleaned|formatted|linted|built|released|tagged|closed|opened|resolved|addressed|applied|"
    r"extracted|replaced|changed|adjusted|improved|extended|introduced|enabled|disabled|generated|regenerated|prepared|scanned|"
    r"inspected|examined|looked|went|worked|handled|ported|converted|split|reverted|rebased|triaged|summari[sz]ed|collected|"
    r"validated|confirmed|executed|started|set up|wired|integrated|shipped|planned|discussed|attended|did|"
    r"made|performed|conducted)"
)
_DONE = lazy_pattern(
    rf"(?:(?:i|we|agents?|the (?:agent|team|worker|reviewer))[ ])?(?:(?:have|has|had|'ve|was|were)[ ])?"
    rf"(?:(?:also|then|now|just|successfully|finally|already)[ ]){{0,2}}{_DONE_VERBS}\b[^\n]*"
    r"|(?:task|work|phase|step|review|audit)s?[ ](?:was[ ]|is[ ])?(?:completed|complete|done|finished)\b[^\n]*"
    r"|(?:all[ ])?(?:\d+[ ])?tests?[ ](?:pass|passed|green|ran)\b[^\n]*|done|completed|all done",
    re.IGNORECASE,
)
_CLAIM = lazy_pattern(
    r"\b(?:must|should|never|always|because|since|needs?|requires?|avoid|use|uses|ensure|prefer|if|when|whenever|unless|otherwise|"
    r"is|are|isn't|aren't|can|cannot|can't|will|won't|do|don't|does|doesn't|causes?|caused|leaks?|breaks?|fails?|lost|loses|"
    r"so that|which|therefore|instead|only|but|due to|turned out|learned|found that|means|root cause|to avoid|"
    r"to prevent|hence)\b"
    r"|=>|->|\u2192",
    re.IGNORECASE,
)
_SENTENCE = lazy_pattern(r"(?<=[.!?;])\s+|\n+")
_ITEM_MARKS = lazy_pattern(r"^[ \t]*(?:(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?")


@cache
def _nothing_pattern() -> re.Pattern[str]:
    """Compile the pattern of a sentence that reports nothing on first use."""
    start = r"(?:there (?:are|were|is|was|have been) |i have |we have |i found |we found |found |identified |we |i )?"
    return re.compile(
        rf"{start}(?:no|zero|0|none|nothing|not any|without|did not find any|found no)(?:[ ,/]+{_WORD}){{0,14}}"
        r"|(?:i |we )?(?:reviewed|checked|examined|inspected|audited"
        r"|read)(?: (?!and\b|but\b)[\w./-]+){1,8},?(?: and|,| but) "
        rf"{start}(?:no|nothing)(?: {_WORD}){{0,8}}"
        rf"|(?:the |this |my |our )?(?:review|audit|check|analysis|scan|run|pass) (?:has |had )?"
        rf"(?:found|finds|shows|showed|reported|revealed|identified"
        rf"|uncovered|produced|surfaced) (?:no|nothing)(?: {_WORD}){{0,8}}"
        rf"|(?:found|reviewed|checked) (?:\d+ )?(?:0|zero|no|files?) ?(?:{_NOUN})?"
        rf"|{_NOUN}(?: found| identified)?\s*[:=\u2013\u2014-]\s*(?:none|0|no|n/a|nothing)"
    )


def reports_nothing(text: str) -> bool:
    """Return whether all sentences of a text report that there is nothing; an empty text does not."""
    bare = " ".join(text.split()).casefold().replace("\u2019", "'")
    if not bare or len(bare) > _MAX_LENGTH:
        return False
    lines = [line for line in _CHECKED_ITEMS.sub("", text).split("\n") if line.strip()]
    if all(_is_empty_count(line) for line in lines):
        return True
    if len(lines) > 1 and all(map(reports_nothing, lines)):
        return True
    if bare.strip(_MARKS) in _NOTHING or bare in _NOTHING:
        return True
    sentences = [part.strip(_MARKS) for part in re.split(r"[.!?\u3002](?:\s|$)", bare)]
    sentences = [part for part in sentences if part]
    return bool(sentences) and all(map(_is_nothing_sentence, sentences))


def _is_nothing_sentence(sentence: str) -> bool:
    if sentence in _NOTHING or _nothing_pattern().fullmatch(sentence) is not None:
        return True
    if _UNSPACED_NOTHING.fullmatch(sentence):
        return True
    words = re.findall(r"[^\s,:;/]+", sentence)
    foreign = all(word in _FOREIGN_WORDS for word in words)
    return foreign and 1 < len(words) <= _MAX_FOREIGN_WORDS and not _FOREIGN_NEGATIVES.isdisjoint(words)


def _is_empty_count(line: str) -> bool:
    """Return whether a line gives a place of a report and nothing in it: `Critical: 0`, `Findings: none`."""
    label, colon, value = line.partition(":")
    return bool(colon) and is_report_heading(re.sub(r"(?i)^\W*total\b", "", label)) and is_bare_nothing(value)


def is_bare_nothing(text: str) -> bool:
    """Return whether a text is only a word such as "None." or "N/A", which can also be the answer to a question."""
    bare = " ".join(text.split()).casefold()
    return bare.strip(_MARKS) in _NOTHING or bare in _NOTHING


def is_report_heading(title: str) -> bool:
    """Return whether a heading names a place of a report (`Critical findings`), and no subject."""
    words = re.findall(r"[^\W_]+(?:-[^\W_]+)*", title.casefold())
    return bool(words) and all(word in _SECTION_WORDS or word.isdigit() for word in words)


def is_verdict(title: str) -> bool:
    """Return whether a heading only gives the verdict of a report (`Verdict: Pass`)."""
    return _VERDICT.fullmatch(title.strip(_MARKS)) is not None


def names_severity(title: str) -> bool:
    """Return whether a heading names how serious the findings below it are."""
    return _SEVERITY.search(title) is not None


def merely_reports(title: str, text: str) -> bool:
    """Return whether a learning only reports what was done, and claims nothing that holds longer."""
    whole = text if text.strip() else title
    sentences = [_ITEM_MARKS.sub("", part).strip(" \t*_`.!?;") for part in _SENTENCE.split(whole)]
    sentences = [part for part in sentences if part]
    if not sentences or _CLAIM.search(title) or not all(_DONE.fullmatch(part) for part in sentences):
        return False
    return not any(_CLAIM.search(part) for part in sentences)
