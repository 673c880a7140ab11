"""The embedded model's answers in a chat, by plain rules: it searches for the words of a question and lists
what it has found.

It uses the same protocol as a remote model: it receives messages and tools, calls a tool, receives the
result, and answers with a text. It understands nothing of what it reads; it names the screenshots and quotes
them.
"""

import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from text import one_line, shortened

SEARCH, READ, SAVE = "search_knowledge_base", "get_screenshot", "save_memory"
Call = dict[str, Any]  # of a tool, as the protocol has it

MAX_SINGLE = 4  # words that are searched for one by one
SHOWN = 5  # screenshots that an answer names
MAX_SHOWN = 240  # characters of each
MAX_READ = 1_500  # characters of an attached picture's text that an answer repeats

# Question words; they say nothing about the screenshot's content.
_QUESTION_WORDS = re.compile(
    "a|about|all|an|and|any|are|at|be|been|can|could|did|do|does|find|for|from|get|give|had|has|have|how|i|images?|in|into|is|it|its|list|look|"
    "looking|me|my|of|on|or|our|photos?|pictures?|please|recall|remember|saved?|screenshots?|search|see|seen|show|some|tell|that|the|their|"
    "there|these|this|those|to|us|was|we|were|what|what['’]s|when|where|where['’]s|which|who|whose|why|will|with|would|you|your",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['’.@:/_-][^\W_]+)*")
_QUESTION_WORDS_CHINESE = re.compile(
    "请问|请|帮我|给我|告诉我|查一下|查找|搜索|找一下|找找|找到|看看|我想知道|知道|有没有|是不是|在哪里|在哪儿|哪里|哪儿|哪个|哪些|哪天|什么时候|什么|"
    "怎么样|怎么|为什么|多少|几点|几号|是谁|谁|截图|图片|照片|保存|存过|看过|有关|关于|相关|我的|我|你|的|了|吗|呢|吧|是|有|在|和|与|里|中|上"
)
_CHINESE = re.compile("[\u4e00-\u9fff]")
_REMEMBER = re.compile(
    r"\s*(?:please\s+)?(?:remember|note|keep in mind)(?:\s+that)?[\s:,]+(?P<content>.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMEMBER_CHINESE = re.compile(
    r"\s*(?:请)?(?:帮我)?(?:记住|记下|记得|记一下)[\s:：，,]*(?P<content>.+)", re.DOTALL
)

_TEXTS = {
    "en": {
        "found": "I found this in your screenshots:",
        "more": "There are {more} more.",
        "nothing": "I found nothing about that in your screenshots.",
        "saved": "I will remember that: {content}",
        "failed": "That did not work: {error}",
        "remembered": "I remember:",
        "picture": "I cannot judge the picture, but this is written on it:",
        "blank": "I can read no text on the picture.",
        "untitled": "Screenshot",
        "elsewhere": "I found this elsewhere:",
    },
    "zh": {
        "found": "在你的截图中找到：",
        "more": "另外还有 {more} 张。",
        "nothing": "在你的截图中没有找到相关内容。",
        "saved": "好的，我记住了：{content}",
        "failed": "没有成功：{error}",
        "remembered": "我记得：",
        "picture": "我无法理解图片内容，但上面写着：",
        "blank": "图片上没有可以识别的文字。",
        "untitled": "截图",
        "elsewhere": "在其他地方找到：",
    },
}


def reply(
    messages: list[dict[str, Any]], offered: set[str], remembered: Sequence[str], read: Callable[[str], str]
) -> tuple[str, list[Call]]:
    """A text, or calls of some of the `offered` tools.

    `messages` are those of the protocol; the tools' answers after the last user message belong to this turn.
    `remembered` are memories that may matter. `read` returns the text on a picture, given its data URL.
    """
    place = max(number for number, message in enumerate(messages) if message["role"] == "user")
    question, pictures = _text_and_pictures(messages[place])
    answers = [
        _read_answer(message["content"]) for message in messages[place + 1 :] if message["role"] == "tool"
    ]
    texts = _TEXTS["zh" if _CHINESE.search(question) else "en"]
    if not answers and SAVE in offered and (content := _to_remember(question)):
        return "", [_call(SAVE, content=content, memory_type="long_term")]
    if SEARCH in offered and not pictures and (calls := next_searches(question, answers)):
        return "", calls
    parts = [_picture_text(read(picture), texts) for picture in pictures]
    parts += [_memories_text(question, remembered, texts), _results_text(answers, texts)]
    return "\n\n".join(filter(None, parts)) or texts["nothing"], []


def from_results(question: str, results: Sequence[str]) -> str:
    """An answer made of what tools found, for a model that gives none. `results` are their JSON texts, in the
    order of their calls.
    """
    texts = _TEXTS["zh" if _CHINESE.search(question) else "en"]
    answers = [_read_answer(result) for result in results]
    useful = [answer for answer in answers if answer.get("results")]
    if not useful:
        return _results_text(answers[-1:], texts) or texts["nothing"]
    screenshots = [answer for answer in useful if answer.get("tool") in (SEARCH, READ)]
    saved = [answer for answer in useful if answer.get("tool") == SAVE]
    others = [answer for answer in useful if answer.get("tool") not in (SEARCH, READ, SAVE)]
    parts = [_results_text([answer], texts) for answer in saved]
    parts += [_results_text(screenshots, texts), _others_text(others, texts)]
    return "\n\n".join(filter(None, parts))


def next_searches(question: str, answers: list[dict[str, Any]]) -> list[Call]:
    """The searches for the words of a question: first for all of them together, and if nothing is found, for
    each. `answers` are the results of the searches so far.
    """
    words = keywords(question).split()
    if not answers:
        return [_call(SEARCH, query=" ".join(words), limit=SHOWN)]
    if (
        len(answers) == 1
        and answers[0].get("tool") == SEARCH
        and not answers[0].get("results")
        and len(words) > 1
    ):
        return [
            _call(SEARCH, query=word, limit=SHOWN)
            for word in sorted(words, key=len, reverse=True)[:MAX_SINGLE]
        ]
    return []


def keywords(question: str) -> str:
    """The words of a question that may be on the screenshots; the whole question when there are none."""
    left = _QUESTION_WORDS_CHINESE.sub(" ", question) if _CHINESE.search(question) else question
    words = [word for word in _WORD.findall(left) if not _QUESTION_WORDS.fullmatch(word)]
    return " ".join(words) or question.strip()


def _call(name: str, **arguments: Any) -> Call:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{secrets.token_hex(8)}", "type": "function", "function": function}


def _text_and_pictures(message: dict[str, Any]) -> tuple[str, list[str]]:
    content = message["content"]
    if isinstance(content, str):
        return content, []
    texts = [part["text"] for part in content if part["type"] == "text"]
    return "\n".join(texts), [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


def _to_remember(message: str) -> str:
    """What a message asks to remember, or "". A question is no such request."""
    match = _REMEMBER.fullmatch(message) or _REMEMBER_CHINESE.fullmatch(message)
    return match["content"].strip() if match and not message.rstrip().endswith(("?", "？")) else ""


def _read_answer(content: str) -> dict[str, Any]:
    """The JSON of a tool's answer, inside its frame; an empty object when it was cut."""
    try:
        answer: dict[str, Any] = json.loads(content[content.index("{") : content.rindex("}") + 1])
    except ValueError:
        return {}
    return answer


def _results_text(answers: list[dict[str, Any]], texts: dict[str, str]) -> str:
    if not answers:
        return ""
    last = answers[-1]
    if error := last.get("error"):
        return texts["failed"].format(error=error)
    results = [result for answer in answers for result in answer.get("results", [])]
    if last.get("tool") == SAVE:
        return texts["saved"].format(content=results[0]["snippet"])
    if not results:
        return texts["nothing"]
    # Screenshots that several searches have found come first.
    times = Counter(result["id"] for result in results)
    found = sorted(
        {result["id"]: result for result in results}.values(), key=lambda result: -times[result["id"]]
    )
    lines = [_line(result, texts) for result in found[:SHOWN]]
    if (more := max(len(found), *(answer.get("total", 0) for answer in answers)) - len(lines)) > 0:
        lines.append(texts["more"].format(more=more))
    return "\n".join([texts["found"], "", *lines])


def _line(result: dict[str, Any], texts: dict[str, str]) -> str:
    day = str(result.get("taken") or "")[:10]
    quote = shortened(one_line(str(result.get("snippet") or result.get("summary") or "")), MAX_SHOWN)
    heading = f"**{result.get('title') or texts['untitled']}**" + (f" ({day})" if day else "")
    return f"- #{result.get('id')} {heading}: {quote}"


def _others_text(answers: list[dict[str, Any]], texts: dict[str, str]) -> str:
    """The results of the web search and of MCP servers: a title, a snippet and perhaps an address each."""
    lines = []
    for result in [result for answer in answers for result in answer["results"]][:SHOWN]:
        heading = f"**{one_line(str(result.get('title', '')))}**"
        if address := result.get("url"):
            heading += f" ({address})"
        lines.append(f"- {heading}: {shortened(one_line(str(result.get('snippet', ''))), MAX_SHOWN)}")
    return "\n".join([texts["elsewhere"], "", *lines]) if lines else ""


def _picture_text(text: str, texts: dict[str, str]) -> str:
    if not text.strip():
        return texts["blank"]
    quoted = "\n".join(f"> {line}" for line in text.strip()[:MAX_READ].splitlines())
    return f"{texts['picture']}\n\n{quoted}"


def _memories_text(question: str, remembered: Sequence[str], texts: dict[str, str]) -> str:
    """The memories that share a word with the question; some are recalled only for their importance."""
    wanted = {word.casefold() for word in keywords(question).split()}
    known = [text for text in remembered if any(word in text.casefold() for word in wanted if len(word) > 1)]
    return "\n".join([texts["remembered"], "", *(f"- {text}" for text in known)]) if known else ""
