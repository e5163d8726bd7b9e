"""Turn text into comparable words, and find the small signs that tell two texts apart.

Numbers and their units get one spelling: `30 seconds`, `30s` and `thirty seconds` are the same number.

`fold` and `tokenize` make texts comparable by removing case and signs. The differences that this loses are here:
server A and server B, UTC+2 and UTC-2, `*` and `**`, C and C++, `==` and `===`, `-v` and `-V`, `%Y` and
`%y`. Emphasis, punctuation and the marks of lists, quotations and headings do not count.

The last section has the words of each language that negate, forbid, restrict or advise. A word too many among the
negations costs a line, because two texts are kept that say the same. A missing one costs a learning. So those lists are
broad, and a word may be on them for one language although it means something harmless in another one. Words are as
`fold` leaves them, with and without the signs that many keyboards lack.

The words of advice rank learnings. English ones are in `specificity`, so that none of these is an English word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.text import normalize_characters

# Scripts that put no spaces between words; their runs are compared in overlapping pairs of characters.
_UNSPACED = (
    "\u3005-\u3007\u303b"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Signs of vowels and tones, which belong to the letter before them and to the word.
_COMBINING = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7"
    "\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0bd7"
    "\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d82\u0d83\u0dca-\u0ddf\u135d-\u135f"
)
_LETTER = rf"(?:[^\W{_UNSPACED}]|[{_COMBINING}])"
_WORD = lazy_pattern(rf"[{_UNSPACED}]+|{_LETTER}+(?:'{_LETTER}+)*")
UNSPACED_RUN = lazy_pattern(f"[{_UNSPACED}]+")
"""A run of characters of scripts that put no spaces between words."""

_SUFFIXES = ("ing", "ed", "es", "s")
_MIN_STEM_LENGTH = 3  # letters that a word keeps
_LAST_SPACED_CODEPOINT = 0x0DFF

_UNITS = {
    unit: names.split()[0]
    for names in (
        "ns nanosecond nanoseconds", "us \u03bcs microsecond microseconds", "ms msec millisecond milliseconds",
        "s sec secs second seconds", "min mins minute minutes", "h hr hrs hour hours", "d day days", "week weeks",
        "month months", "year years", "b byte bytes", "kb kilobyte kilobytes", "kib kibibyte kibibytes",
        "mb megabyte megabytes", "mib mebibyte mebibytes", "gb gigabyte gigabytes", "gib gibibyte gibibytes",
        "tb terabyte terabytes", "tib tebibyte tebibytes", "px pixel pixels", "% percent", "x times",
    )
    for unit in names.split()
}  # fmt: skip
_NUMBER_WORDS = {
    "zero": "0", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15",
    "sixteen": "16", "seventeen": "17", "eighteen": "18", "nineteen": "19", "twenty": "20", "thirty": "30",
    "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90", "dozen": "12",
    "hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000",
    "trillion": "1000000000000", "once": "1x", "twice": "2x", "thrice": "3x", "double": "2x", "triple": "3x",
    "half": "1/2", "quarter": "1/4",
}  # fmt: skip
_EACH_WORDS = ("every", "each", "per")
_UNIT = rf"(?:{'|'.join(sorted(_UNITS.keys() - {'%'}, key=len, reverse=True))})(?![^\W_])"
# A following word that is not a unit is left out: it may be a number itself (`twenty-five`, `5 million`).
_NUMBER = lazy_pattern(
    rf"(?P<sign>(?<![\w)\]-])-(?=\d))?(?P<digits>\d+(?:[.,]\d+)*)"
    rf"(?:(?P<attached>[^\W\d_]+|%)|[ -](?P<loose>{_UNIT}|%))?"
    rf"|\b(?P<word>{'|'.join(_NUMBER_WORDS)})s?\b(?:[ -](?P<counted>{_UNIT}|%))?"
    rf"|\b(?:{'|'.join(_EACH_WORDS)})[ ](?P<each>{_UNIT})"
)
_THOUSANDS = lazy_pattern(r",(?=\d{3}(?!\d))")


def fold(text: str) -> str:
    """Return the text in one case and width and without invisible characters; apostrophes are straight."""
    visible, _ = normalize_characters(text)
    return unicodedata.normalize("NFKC", visible).casefold().replace("\u2019", "'")


def tokenize(folded: str) -> list[str]:
    """Return the words of a folded text in order; contractions with `not` are two words."""
    tokens: list[str] = []
    for match in _WORD.finditer(folded):
        word = match[0].strip("_") or match[0]
        if len(word) > 1 and is_unspaced(word):
            tokens += [word[at : at + 2] for at in range(len(word) - 1)]
        elif word.endswith("n't"):
            tokens += [{"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3]), "not"]
        elif word.startswith("n'"):  # French: n'utilisez plus
            tokens += ["ne", word[2:]]
        elif word == "cannot":
            tokens += ["can", "not"]
        else:
            tokens.append(word.removesuffix("'s"))
    return tokens


def is_unspaced(word: str) -> bool:
    """Return whether a word is of a script that puts no spaces between words."""
    return bool(word) and ord(word[0]) > _LAST_SPACED_CODEPOINT and UNSPACED_RUN.fullmatch(word) is not None


def stem(word: str) -> str:
    """Return a word without the commonest English endings, so that `awaits` and `awaited` agree."""
    if not word.isascii():
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM_LENGTH and not word.endswith("ss"):
            word = word[: -len(suffix)]
            break
    return word[:-1] if word.endswith("e") and len(word) > _MIN_STEM_LENGTH else word


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the shared part of two sets, 0..1; two empty sets are equal."""
    shared = len(one & other)
    union = len(one) + len(other) - shared
    return shared / union if union else 1.0


def find_numbers(folded: str) -> Iterator[str]:
    """Yield the numbers of a folded text in order, each with its unit if it has one; `every minute` is one of them."""
    return (_canonical_number(match) for match in _NUMBER.finditer(folded))


def normalize_numbers(folded: str) -> str:
    """Return the folded text with every number in its one spelling."""
    return _NUMBER.sub(_canonical_number, folded)


def _canonical_number(match: re.Match[str]) -> str:
    unit = match["attached"] or match["loose"] or match["counted"] or match["each"] or ""
    unit = _UNITS.get(unit, unit)
    if match["each"]:
        return f"1{unit}"
    number = (
        _NUMBER_WORDS[match["word"]] if match["word"] else (match["sign"] or "") + _THOUSANDS.sub("", match["digits"])
    )
    return number + unit


_CODE_SPAN = lazy_pattern(r"(?<!`)(`{1,2})(?!`)(?P<code>[^`\n]{1,400})\1(?!`)")
_EMPHASIS = lazy_pattern(
    r"(?<![\w*/.\\])(?P<marks>\*{1,3})(?=[^\s*])(?P<text>[^*\n]{1,400})(?<=[^\s*/.])(?P=marks)(?![\w*/])"
)
_LINE_MARKS = lazy_pattern(r"^[ \t]*(?:>[ \t]?)*(?:#{1,6}[ \t]+|(?:[-*+\u2022]|\d{1,9}[.)])[ \t]+)*", re.MULTILINE)
_FENCE = lazy_pattern(r"^[ \t]*(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_TABLE_LINE = lazy_pattern(r"^[ \t]*\|[^\n]*$", re.MULTILINE)
_HTML_COMMENT = lazy_pattern(r"<!--|-->")
# Signs of programs and of mathematics, in runs. A colon, a full stop or a hyphen alone is punctuation.
_SIGN_RUN = lazy_pattern(
    r"[=!<>]=+|=[~>]|<=>|[*&|^~%@\\]+|[+*/%&|^-]=|\+\++|--(?=\W|$)|\?\.|\?\?|::|:=|\.{2,3}(?=\S)|->|<-|<<|>>|=~|\$(?=[\w{(])"
    r"|(?<=[A-Za-z])#(?![\w#])|(?<=[A-Za-z0-9])\+(?=[\s.,;:)]|$)|\+(?=\d)|(?<=\s)[+/<>](?=\s)|[\u00b1\u00d7\u00f7\u2260\u2264\u2265\u2248\u2192\u2190]"
)
_CODE_SIGN = lazy_pattern(
    r"[=!<>*&|^~%@\\+?$#]+|--+|::|\.{2,}|(?<=\W)-(?=\W)|\[\]|\{\}|(?<![\w)])_+(?=[a-z])|(?<=[a-z])_+(?!\w)"
)
_OPTION = lazy_pattern(r"(?<![\w-])--?[A-Za-z][A-Za-z0-9-]{0,40}")
_SIGNS_LETTER = lazy_pattern(r"(?<![\w'\u2019.@/-])(?P<letter>[^\W\d_])(?![\w'\u2019@-]|\.[^\W\d_])")
_ESCAPED_LETTER = lazy_pattern(r"[%\\][A-Za-z]")
_ITERATION_MARK = lazy_pattern("\\w?[\u3005\u303b\u309d\u309e\u30fd\u30fe\u3003\u0e46\u0ec6\u17d7\ua9cf]")
_SIGNED = lazy_pattern(r"(?<=[A-Za-z])[\u2212-](?=\d{1,2}(?:\b|:))")  # UTC-2
_SMALL_SIGN = lazy_pattern(
    r"[\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u20bf\u00a2\u2713\u2705]|\$(?=[ ]?\d)|(?<=\d)[ ]?\$"  # currencies, marks
    r"|(?<![\w.~:/<*)\]}\\-])/(?=[\w.]+/)"  # /var/log is not var/log
    r"|(?<=/)(?:[(_]|\[\[)(?=[\w.])"  # app/(shop) is not app/shop, [[id]] not [id]
    r"|\b(?:https?|wss?|ftps?)(?=://)"
    r"|(?<=\d)[ ]?[KMGT]i?b(?:it)?(?:/s|ps)?\b"  # Mb, not MB
    r"|(?<=\d)[ ]?[mM](?:W|A|V|Hz|J|\u03a9|mol)\b"
)
_IDENTIFIER = lazy_pattern(r"[A-Za-z_$][\w$]*")
_ARTICLES = frozenset("aioueyzwvsckàèéìòóùıøåæиівскуояаёйыوб")
"""Words of one letter, in lower case, in the languages that have them (`a`, `y`, `и`)."""

_SIGN_SPELLINGS = {"\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u2192": "->", "\u2190": "<-", "\u2248": "~"}


def extract_signs(text: str) -> Iterator[str]:
    """Yield every sign and single letter of a text that must not differ, in no particular order."""
    visible, _ = normalize_characters(text)
    prose = _FENCE.sub("", visible)
    yield from (f"sign {sign[0].strip()}" for sign in _SMALL_SIGN.finditer(prose))
    for span in _CODE_SPAN.finditer(prose):
        yield from _signs_in_code(span["code"])
    prose = _LINE_MARKS.sub("", _TABLE_LINE.sub("", _HTML_COMMENT.sub("", _CODE_SPAN.sub(" \u2063 ", prose))))
    prose = _EMPHASIS.sub(lambda match: match["text"], prose)
    for sign in _SIGN_RUN.finditer(prose):
        yield _SIGN_SPELLINGS.get(sign[0], sign[0])
    yield from (option[0] for option in _OPTION.finditer(prose))
    yield from (mark[0] for mark in _ITERATION_MARK.finditer(visible))
    yield from ("minus" for _ in _SIGNED.finditer(prose))
    yield from _letters(prose)


def code_identifiers(text: str) -> frozenset[str]:
    """Return the identifiers in the code spans of a text, in their own case: `Foo` is not `foo`, `user` not `users`."""
    visible, _ = normalize_characters(text)
    return frozenset(name for span in _CODE_SPAN.finditer(visible) for name in _IDENTIFIER.findall(span["code"]))


def _signs_in_code(code: str) -> Iterator[str]:
    options = [option[0] for option in _OPTION.finditer(code)]
    yield from options
    bare = _OPTION.sub(" ", code)
    yield from (sign[0] for sign in _CODE_SIGN.finditer(bare))
    yield from (f"code {letter['letter']}" for letter in _SIGNS_LETTER.finditer(bare))
    yield from (f"code {letter[0]}" for letter in _ESCAPED_LETTER.finditer(bare))


def _letters(prose: str) -> Iterator[str]:
    """Yield the letters that are names. A capital within a sentence is one, a small letter unless it is a word."""
    for line in prose.split("\n"):
        shouted = line.isupper()
        for match in _SIGNS_LETTER.finditer(line):
            letter = match["letter"]
            before = line[: match.start()].rstrip()
            if letter.isupper() and not shouted:
                starts_sentence = not before or before.endswith((".", "!", "?", ":", "\u2014", "\u2013"))
                follows = line[match.end() : match.end() + 2].strip()
                if letter == "I" or (letter.lower() in _ARTICLES and starts_sentence and follows[:1].islower()):
                    continue
                yield letter.casefold()
            elif letter.casefold() not in _ARTICLES or (letter == "a" and not line[match.end() :].strip(" .,;:!?)")):
                yield letter.casefold()


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", unicodedata.normalize("NFKC", text).casefold()))


LISTED_NEGATIONS = _words("""
    no not never none nothing nowhere neither nor non without except unless
    avoid avoids avoided avoiding lack lacks lacking fail fails failed failing refuse refuses refused
    forbid forbids forbidden prohibit prohibits prohibited prevent prevents prevented hardly rarely seldom unlike
    dont doesnt didnt isnt arent wasnt werent cant cannot couldnt wont wouldnt shouldnt mustnt neednt hasnt havent aint
    refrain refrains only skip skips skipped skipping ignore ignores ignored omit omits omitted
    instead contrary barely scarcely

    nicht kein keine keinen keinem keiner keines nie niemals ohne weder niemand nichts nirgends nirgendwo keinesfalls
    keineswegs verboten vermeiden vermeide untersagt kaum statt anstatt ausser außer nur
    ne pas jamais aucun aucune ni rien sans personne nullement interdit interdite eviter éviter evitez
    évitez sauf seulement
    nunca jamás jamas sin tampoco ningún ningun ninguno ninguna nada nadie prohibido evitar evite excepto salvo sólo
    não nao jamais sem nenhum nenhuma nem ninguém ninguem proibido exceto
    mai senza né nessun nessuno nessuna niente nulla vietato evitare evita tranne mica
    niet geen nooit niets niemand noch zonder nergens verboden vermijd vermijden behalve alleen
    inte ej aldrig ingen inget inga utan icke förbjudet undvik endast
    ikke ikkje inkje aldri aldrig ingen intet ingenting uten uden forbudt unngå undgå ekki
    ei emme ette eivät eivät älä älkää koskaan ilman ära ärge ilma
    nie nigdy bez żaden żadna żadne nikt nic nigdzie ani zakazane unikać unikaj należy_nie brak
    ne nikdy nikoliv bez žádný žádná žádné nic nikdo nesmí nelze není nie je_nie nikdy žiadny nemôže nesmie
    nem ne soha sem sosem semmi senki nélkül tilos nincs nincsen nincsenek sincs sincsenek ninc
    nu niciodată niciodata fără fara nimic nimeni niciun nicio interzis
    nije nisu nikad nikada nemoj nemojte nema nemaju bez nikoli nikar ni niso
    nuk mos s'ka asnjëherë nav nedrīkst nekad nėra niekada
    değil değildir degil degildir yok hayır hayir asla hiç hic olmadan yasak sakın deйl deyil emas yo'q hech
    không khong chưa chua đừng dung chẳng chang chẳ đâu cấm đưừng tránh tranh thôi chớ
    tidak tak bukan jangan belum tanpa dilarang hindari tiada tidaklah jgn gak nggak enggak kagak usah
    hindi huwag wala walang bawal hwag siyo sio bila usi kamwe hapana ba kada babu ez gabe sekula
    ní níl ná ddim nid peidiwch byth non neč
    не ни нет нельзя никогда ничего никто нигде без запрещено запрещена запрещён избегайте избегать
    вряд кроме только лишь ні немає не ніколи нічого ніхто заборонено уникати уникайте тільки лише
    няма недей недейте никога немој није нема емес жоқ биш гүй буу
    δεν δε μη μην όχι οχι ποτέ ποτε χωρίς χωρις δίχως κανένας καμία τίποτα ούτε μήτε απαγορεύεται αποφύγετε
    לא אל אין בלי ללא אסור לעולם אף שום להימנע אינו אינה אינם
    لا لم لن ليس ليست ليسوا غير بدون دون عدم بلا أبدا أبدًا ما كلا ممنوع تجنب يمنع مش مو
    نہیں نه نہ مت نباید نیست بدون هرگز کبھی بغیر نا ندارد نکنید
    नहीं नही न ना मत कभी बिना नाही नको नका होइन छैन नगर्नुहोस् केवल सिर्फ
    না নয় নেই নি কখনও কখনো ছাড়া ਨਹੀਂ ਨਾ ਨા નથી નહીં નહીં નહિ ન
    இல்லை கூடாது வேண்டாம் அல்ல లేదు కాదు వద్దు కూడదు ಇಲ್ಲ ಬೇಡ ಅಲ್ಲ ഇല്ല അല്ല അരുത് නැහැ එපා
    არ არა ვერ ნუ չի չեն չե մի ոչ አይደለም የለም አት
""")
"""Words that negate, forbid or restrict the next word."""

RETRACTIONS = _words("""
    deprecated obsolete outdated retracted withdrawn superseded fixed resolved solved wrong incorrect false
    untrue invalid
    myth disproved disproven refuted reverted rescinded void revoked cancelled canceled stop stops stopped
    stopping cease
    ceased quit formerly previously erroneous erroneously mistaken mistakenly misleading stale expired undo
    undone correction
    corrected wontfix abandoned dropped supposedly allegedly debunked retired scrapped discontinued sunset
    overruled dead
    moot bogus hoax nonsense inaccurate disputed invalidated nullified repealed unfounded disregard
    disabled removed closed until till rather eol legacy
    historical historically sometimes occasionally might maybe perhaps almost nearly rarely

    veraltet überholt ueberholt behoben falsch hinfällig aufgehoben früher ehemals vormals gelöst erledigt ungültig
    widerrufen zurückgezogen irrtum irrtümlich korrigiert abgeschafft eingestellt gestrichen unzutreffend
    stimmt_nicht mehr
    obsolète obsolete périmé faux fausse corrigé résolu annulé abandonné autrefois auparavant arrêter
    arrêtez cesser cessez
    déprécié caduc erroné erreur retiré révoqué plus ancien anciennement désuet invalide
    obsoleto obsoleta falso falsa corregido resuelto anulado descartado deje dejar dejen antes antiguamente
    desactualizado
    erróneo equivocado incorrecto retirado cancelado anticuado ya obsoletos inválido
    deixou deixaram parou pare parem corrigido resolvido anulado descartado
    deixar deixe antigamente desatualizado errado incorreto retirado
    já ultrapassado
    corretto risolto annullato abbandonato smettere smetti superato sbagliato errato ritirato più già deprecato un_tempo
    verouderd vervallen opgelost onjuist fout voorheen vroeger ingetrokken achterhaald gestopt stoppen meer
    hersteld ongeldig
    föråldrad föråldrat fel felaktig åtgärdat löst tidigare sluta längre upphävd forældet foreldet løst
    rettet feil forkert
    lengre længere stopp tidligere vanhentunut korjattu virheellinen väärä aiemmin enää
    przestarzałe przestarzały przestarzała nieaktualne nieaktualny naprawione naprawiono błędne błąd fałsz
    fałszywe dawniej
    kiedyś wcześniej już anulowane wycofane odwołane rozwiązane przestań niepoprawne
    zastaralé zastaralý opraveno vyřešeno dříve nepravda chybné zrušeno už již zastarané opravené zrušené
    elavult javítva téves hibás visszavonva már régen învechit rezolvat greșit anulat fost zastarjelo ispravljeno
    eski eskimiş düzeltildi yanlış yanlis artık artik geçersiz iptal çözüldü eskiden bırakın kaldırıldı hatalı
    sai ngưng ngung hết xóa bỏ hủy cũ nhầm dừng đã usang salah dulu dahulu berhenti hentikan diperbaiki
    dibatalkan keliru
    kedaluwarsa kadaluarsa lagi lapuk tertinggal ditarik luma mali dati itigil
    устарело устарел устарела устаревшее исправлено неверно ложь больше раньше прежде отменено ошибка
    ошибочно неправда решено отозвано хватит перестаньте прекратите неактуально было уже
    застаріло виправлено хибно раніше скасовано помилка помилково більше неправда вирішено вже припиніть
    остаряло поправено
    ξεπερασμένο διορθώθηκε λάθος παλιά πλέον πια ακυρώθηκε מיושן תוקן שגוי בוטל יותר בעבר
    قديم خطأ خاطئ ملغى ألغي سابقا سابقًا توقف توقفوا مهمل إصلاح كان كانت باطل كاذب منسوخ غلط دیگر قدیمی غلطی
    गलत पहले बंद रद्द अप्रचलित पुराना ठीक अब अमान्य हटाया झूठ ভুল বাতিল আগে தவறு
""")
"""Words that take a statement back, or say that it was true only once. On one side alone they make two learnings."""

UNSPACED_NEGATIONS = lazy_pattern(
    unicodedata.normalize(
        "NFKC",
        # Chinese and Japanese
        "[不没沒無无勿别別非未莫否毋甭]|な(?:い|く|かっ|けれ|し)|ません|ずに|せず|ざる|まい|ぬ|(?<=[るすくうつむぶぐ])な(?![ぁ-ん])"
        "|だめ|ダメ|禁止|避免|严禁|嚴禁|拒绝|拒絕|のみ|だけ|只|仅"
        # taken back
        "|废弃|廢棄|作废|作廢|过时|過時|过期|錯誤|错误|误|誤|虚假|已修|修复|修復|修正済|已解决|已解決|解決済|撤回|撤销|撤銷|取消|停止|停用|曾经|曾經|以前|原先"
        "|廃止|非推奨|古い|やめ|中止|かつて|旧"
        # Korean
        "|않|못|없|아니|금지|말(?:아|라|고|것|지|자|아야)|마세요|마십시오|마라|(?<![가-힣])안(?![가-힣])|(?<![가-힣])말(?![가-힣])"
        "|폐기|수정됨|해결|틀림|틀렸|거짓|잘못|예전|이전|더는|더 이상|중단|중지|철회|취소|그만|오류"
        # Thai, Lao, Khmer, Burmese
        "|ไม่|ห้าม|อย่า|มิได้|มิ|ไร้|ปราศจาก|ยกเลิก|เลิก|หยุด|ผิด|ล้าสมัย|เคย|แก้ไขแล้ว|ບໍ່|ຢ່າ|ຫ້າມ|ເຊົາ|ຜິດ"
        "|មិន|ពុំ|កុំ|គ្មាន|ហាម|ឈប់|ខុស|မ|ဘူး|ရပ်",
    )
)
"""Negations and retractions in scripts that put no spaces between words, and in Korean."""

NEGATION_SIGNS = lazy_pattern("!(?=[\\w(])|[\u00ac\u274c\u2717\u2718\u2716\U0001f6ab\u26d4\U0001f44e\U0001f5d1]|~~")
"""Signs that deny, forbid or cross out."""

RETRACTING_PHRASES = lazy_pattern(
    r"\b(?:used to|no longer|any ?more|until recently|(?:it|this|that) (?:was|is) a mistake"
    r"|turned out|we thought|we assumed"
    r"|(?:is|was|are|were) (?:once|gone|over)|rolled back|nicht mehr|ne plus|ya no|j\u00e1 n\u00e3o|"
    r"non pi\u00f9|niet meer|inte l\u00e4ngre|ikke lenger)\b"
)
"""Phrases that say that a statement was true only once."""


class Advice(NamedTuple):
    """Words of advice in many languages: a pattern of whole words, and one of parts of scripts without spaces."""

    spaced: re.Pattern[str]
    unspaced: re.Pattern[str]

    def find(self, lower: str) -> Iterator[re.Match[str]]:
        """Yield the words in a text in lower case."""
        yield from self.spaced.finditer(lower)
        if not lower.isascii():
            yield from self.unspaced.finditer(lower)


def _advice(spaced: str, unspaced: str) -> Advice:
    """Return the pattern of words and of beginnings of words (`fehl*`), all in lower case, and that of parts of words.

    A search that ignores case takes several times as long.
    """
    words = sorted(set(unicodedata.normalize("NFKC", spaced).lower().split()))
    whole = _alternatives([[_PARTS.get(character) or re.escape(character) for character in word] for word in words])
    return Advice(lazy_pattern(rf"\b(?:{whole})\b"), lazy_pattern(unspaced))


_PARTS: Final = {"_": r"\s+", "*": r"\w*"}


def _alternatives(words: Sequence[Sequence[str]]) -> str:
    """Return a pattern of any of these sorted words, each a sequence of characters.

    A common beginning is written once, since otherwise each of some hundred words is tried at each place of a text.
    """
    found = []
    for first, group in groupby(words, key=lambda word: word[:1]):
        rest = [word[1:] for word in group]
        found.append("".join([*first, *rest[0]]) if len(rest) == 1 else f"{''.join(first)}(?:{_alternatives(rest)})")
    return "|".join(found)


RULE_ADVICE = _advice(
    """
    immer stets muss müssen musst sollte sollten sollst niemals nie darf dürfen stattdessen anstatt vermeide vermeiden
    unbedingt zwingend grundsätzlich auf_keinen_fall nur_wenn
    toujours doit doivent devez devrait devraient jamais éviter évitez évite il_faut plutôt impérativement obligatoire
    au_lieu
    siempre debe deben debería deberían nunca jamás evitar hay_que en_lugar_de en_vez_de obligatorio
    sempre deve devem devono nunca mai evitare em_vez_de invece_di bisogna occorre
    altijd moet moeten nooit vermijd vermijden in_plaats_van
    zawsze nigdy należy musi muszą trzeba unikać unikaj zamiast
    alltid altid aldrig aldri måste skal skall bör undvik i_stället i_stedet
    vždy nikdy musí je_třeba místo
    всегда никогда нельзя нужно следует должен должна должны надо обязательно вместо избегать избегайте необходимо
    завжди ніколи треба слід замість потрібно
    her_zaman asla daima gerekir zorunda yerine
    luôn phải đừng thay_vì selalu harus jangan sebaiknya
    """,
    "必须|必須|务必|務必|不要|不能|不得|不可|绝不|絕不|切勿|请勿|請勿|禁止|严禁|应该|應該|应当|應當|应改|避免|始终|始終|总是|總是|一定要|改用|而不是"
    "|必ず|べき|なければならない|してはいけない|してはならない|しないで|常に|絶対に|代わりに|避け"
    "|반드시|항상|절대|해야|하지 ?마|하지 ?말|대신|금지|피해야|हमेशा|कभी न|चाहिए|دائما|دائمًا|يجب|لا تستخدم|ต้อง|ห้าม|อย่า",
)
"""Words that state a rule."""

REMEDY_ADVICE = _advice(
    """
    verwend* benutz* nutzen setze setzen prüfe prüfen teste testen schließ* schliess* öffne* hinzufüg* ergänz* ersetz*
    entfern* änder* beheb* behoben aufnehmen sperre sperren wiederhol* lösung abhilfe
    utilis* ajout* remplac* supprim* vérifi* ferme fermer rouvr* corrig* définir
    usar utilizar añad* agregar agregue reemplaz* eliminar elimine verificar verifique comprob* cerrar corrig* solución
    adicionar adicione substituir fechar aggiung* sostitui* rimuov* verificare controllare chiudere soluzione
    gebruik* voeg_toe vervang* verwijder* controleer* sluit
    użyj używaj dodaj zastąp* usuń sprawdź zamknij popraw
    использ* добав* замен* удал* провер* закры* откры* исправ* решение
    використ* дода* замін* видал* перевір* закри* виправ*
    kullan* ekle* değiştir* kaldır* kontrol kapat*
    """,
    "使用|添加|加上|加入|替换|替換|改为|改為|改成|删除|刪除|检查|檢查|校验|验证|驗證|修复|修復|修改|关闭|關閉|打开|打開|设置|設置|确保|確保|重试|调用|清除"
    "|使う|使い|追加|置き換え|削除|確認|検証|修正|閉じ|開き|設定|사용|추가|교체|삭제|확인|검증|수정|닫아|설정",
)
"""Words that say what to do."""

FLAW_ADVICE = _advice(
    """
    weil fehlt fehlte fehlten fehlende* fehler falsch kaputt verliert verloren blockier* abbricht abstürz* stürzt
    undicht leck überschreib* veraltet
    parce_que manque manquait erreur erreurs fausse cassé perd perdu* bloque* plante fuite* écras* obsolète
    porque falta faltaba falla fallan roto pierde* bloquea* fuga sobrescrib* erro falha perde quebra errore fallisce
    потому отсутств* ошибк* ломает* теряет* завис* утечк* падает сбой
    ponieważ błąd brakuje omdat fout ontbreekt çünkü hata
    """,
    "因为|因為|由于|由於|错误|錯誤|失败|失敗|缺少|缺失|丢失|丟失|泄漏|洩漏|泄露|崩溃|崩潰|死锁|退出|无效|無效|覆盖|覆蓋|冲突|衝突|共用了"
    "|エラー|漏れ|クラッシュ|無効|原因|때문|오류|실패|누락|누수|충돌|잘못",
)
"""Words that say what went wrong."""

SEVERE_ADVICE = _advice(
    """
    kritisch* sicherheit* datenverlust schwerwiegend* sécurité crítico crítica seguridad segurança sicurezza
    критич* безопасност* krytyczn* bezpieczeństw*
    """,
    "严重|嚴重|安全|致命|数据丢失|重大|セキュリティ|심각|보안",
)
"""Words that name a high severity."""
