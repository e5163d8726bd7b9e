"""Words that deny one another, as tables. What is concluded from them is told in `contradiction`."""

from __future__ import annotations

import re

NEGATIONS = frozenset(
    re.findall(
        r"\S+",
        """
        no not never none nothing nobody nowhere neither nor non without except unless
        avoid avoids avoided avoiding lack lacks lacking fail fails failed failing refuse refuses refused
        forbid forbids forbidden prohibit prohibits prohibited prevent prevents prevented hardly rarely seldom unlike
        dont doesnt didnt isnt arent wasnt werent cant cannot couldnt wont wouldnt shouldnt mustnt neednt hasnt havent
        nicht kein keine keinen niemals nie ohne pas jamais sans nunca sin không chưa đừng chẳng
        """,
    )
)
"""Words after which the next word is denied. English, and the commonest of German, French, Spanish and Vietnamese."""

CJK_NEGATIONS = re.compile("[不没沒無无勿别別非]|ない|ません|ずに|않|못|없|금지|禁止|避免")
NEGATION_SIGNS = re.compile("!(?=[\\w(])|[\u00ac\u274c\u2717\u2718\U0001f6ab\u26d4\U0001f44e]")

_GROUPS = """
always / never / sometimes / often / usually; all every / some / any / none
must shall / may might / optional optionally; should / may might; enable / disable; on / off; true / false
yes / no; before / after; first / last; up / down; in / out; with / without; above / below; more / less fewer
most / least; max maximum / min minimum; high / low; higher / lower; highest / lowest; larger / smaller
large big / small; long / short; longer / shorter; greater / less; faster / slower; fast quick / slow
early / late; earlier / later; start begin / stop end finish; open / close; add insert / remove delete
create / delete destroy drop; allow permit / deny forbid block; accept / reject; grant / revoke
acquire / release; lock / unlock; read / write; push / pull / pop; get / set; client / server; input / output
left / right; front / back; backend / frontend; top / bottom; inside / outside; internal / external
public / private / protected; local / remote / global
sync synchronous synchronously / async asynchronous asynchronously; blocking / nonblocking; mutable / immutable
static / dynamic; strict / lenient loose; eager eagerly / lazy lazily; required mandatory / optional
safe / unsafe; valid / invalid; success / failure; succeed succeeds / fail; pass passes / fail fails
same equal identical / different unequal; include / exclude; increase / decrease; increment / decrement
raise / lower; encode / decode; encrypt / decrypt; serialize / deserialize; import / export; upload / download
upgrade / downgrade; install / uninstall; subscribe / unsubscribe; connect / disconnect; attach / detach
show / hide; expand / collapse; commit / rollback abort; keep / drop discard; keep / remove
prefer use using used uses / avoid; ascending asc / descending desc; oldest / newest; old / new; older / newer
odd / even; positive / negative; absolute / relative; parent / child; upstream / downstream
source / target destination; sender / receiver; producer / consumer; request / response; row / column
horizontal / vertical; forward / backward; next / previous; prefix / suffix; uppercase / lowercase
sequential serial / parallel concurrent; cold / warm / hot; empty / full; present / absent missing
known / unknown; explicit explicitly / implicit implicitly; manual manually / automatic automatically
production prod / staging / development dev; debug / release; primary / replica secondary
whitelist allowlist / blacklist denylist blocklist; good / bad; right / wrong; correct / incorrect
better / worse; best / worst; fixed / broken; cheap / expensive; easy / hard; simple / complex
persistent permanent / ephemeral temporary; supported / unsupported; trusted / untrusted; outer / inner
major / minor; hourly / daily nightly / weekly / monthly / yearly annually
总是 / 从不; 启用 / 禁用; 之前 / 之后; 允许 / 禁止; 常に / 決して; 有効 / 無効; 항상 / 절대
"""
OPPOSITES: tuple[tuple[frozenset[str], ...], ...] = tuple(
    tuple(frozenset(side.split()) for side in group.split("/"))
    for line in _GROUPS.strip().splitlines()
    for group in line.split(";")
)
"""Groups of words of which a text says one side; the words of one side mean the same."""

_SYNONYMS = """
in within inside; because since as; or otherwise else; while during; when whenever; you we one they; can could
also too; with using via; before prior; need needs must; so thus hence therefore; to into onto
"""
SYNONYMS: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split()) for line in _SYNONYMS.strip().splitlines() for group in line.split(";")
)
"""Words of which one may stand for another; those on one side of a group of opposites may as well."""

DENYING_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "de", "anti", "mis", "a")
SWAPPED_PREFIXES = (
    ("en", "dis"),
    ("en", "de"),
    ("in", "de"),
    ("in", "ex"),
    ("im", "ex"),
    ("up", "down"),
    ("pre", "post"),
    ("over", "under"),
    ("inter", "intra"),
)

DIRECTED = frozenset(
    re.findall(
        r"\S+",
        """
        before after over under than to from into onto for by instead rather not then above below until unless without
        requires require overrides override replaces replace calls call imports wraps wrap extends extend depends
        beats precedes follows contains inside outside
        """,
    )
)
"""Words that join two things in one direction: to exchange the things is to say something else."""

FILLERS = frozenset(
    re.findall(r"\S+", "a an the of is are be was were it its this that these those and or do does did ever")
)
"""Words that may come and go without changing what is said."""
