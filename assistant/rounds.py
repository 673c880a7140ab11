"""The rounds of a turn: the model is asked, the tools that it calls run, it is sent their results and asked
again, at most `ROUNDS` times; then once more without tools, so that a turn ends in text.

A call that would send something out may wait for the person (`assistant/confirmation.py`): the rounds stop
then, and go on from there when the turn is resumed.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

import database
from assistant import citations, confirmation, context, turns
from assistant.citations import Citation
from assistant.confirmation import Call, Destination, Noted, Paused
from assistant.openings import Opening, messages_of
from assistant.tools import Toolbox
from assistant.transcript import Transcript
from assistant.turns import Turn
from engines import prompts, reading
from engines.findings import Answer, Usage
from errors import AnswerUnusable, ModelFailure, ToolsRefused
from models import AskedCall, Message
from rules import replies
from settings import Settings
from text import cut

log = logging.getLogger(__name__)

ROUNDS = 3
MAX_CALLS = 8  # of tools in a round; the rest is ignored
MAX_REPLY = 100_000  # characters: a longer one would be stored and sent again, and slow down the page
MAX_PICTURES = 8  # sent again from earlier turns: each adds up to 0.5 MB to the request

HELD_BACK = {
    "zh": "（未经你确认，以下内容没有发送：{calls}。此客户端无法询问；请在网页中提问。）",
    "en": "(Not sent without your consent: {calls}. This client cannot ask for it; the page can.)",
}
CALL_TO = {"zh": "{tool}（发往 {server}）", "en": "{tool} to {server}"}
CUT_OFF = {"zh": "（回答达到长度上限，在此中断。）", "en": "(The answer stopped here, at its length limit.)"}


class Rounds:
    """What follows the person's message, as it is stored (`following`) and as the protocol has it. `text` is
    the answer, `citations` where it is from, and `usage` what the model's calls cost, also after a failure.
    """

    def __init__(self, settings: Settings, opening: Opening, clock: Callable[[], datetime]):
        self._settings, self._opening, self._clock = settings, opening, clock
        self.text = ""
        self.citations: list[Citation] = []
        self.usage = Usage()
        self.asked: dict[str, Destination] = {}  # what this run asks the person
        self._held_back: list[Destination] = []
        self._has_foreign_text = opening.has_foreign_text
        paused = opening.paused
        self.following: Turn = messages_of(paused) if paused else []
        self._open: list[Call] = paused.open if paused else []  # of the round that is not over
        self._rounds = paused.rounds if paused else 0
        # The model's messages with calls, as it sent them: their fields are of no use to another model.
        is_same = paused is not None and paused.model == opening.model.identity
        self._spoken: list[dict[str, Any]] = paused.spoken if paused and is_same else []
        self._read_history()

    @property
    def is_waiting(self) -> bool:
        return any(call.result is None for call in self._open)

    @property
    def paused(self) -> Paused:
        """What is stored of a turn that waits for the person."""
        opening = self._opening
        return Paused(
            opening.message.device_id,
            opening.message.skill_id,
            opening.recalled,
            opening.has_foreign_memories,
            self._rounds,
            opening.model.identity,
            self._spoken,
            msgspec.convert(self.following, list[Noted], from_attributes=True),
            self._open,
        )

    def run(self, allowed: AskedCall | None = None) -> None:
        """Ask the model and run its tools to an answer or a question. An `allowed` call runs first."""
        with self._toolbox() as toolbox:
            if allowed is not None:
                result = toolbox.run(allowed.tool, allowed.arguments, allowed_for=allowed.server)
                with database.scope():
                    confirmation.keep_result(allowed, result)
            self._run(toolbox)

    def _toolbox(self) -> Toolbox:
        opening = self._opening
        return Toolbox(
            self._settings,
            device_id=opening.message.device_id,
            own_words=[*self._history.own_words, opening.message.content],
            recalled=opening.recalled,
            clock=self._clock,
            gated=opening.gated,
            is_kept=lambda: turns.is_kept(opening.question),
        )

    def _run(self, toolbox: Toolbox) -> None:
        if self._open:
            with database.scope():
                self._open = confirmation.settle(self._open)
            if self.is_waiting:
                return None
            self._close_round()
        while self._rounds < ROUNDS:
            if not self._opening.model.takes_tools:
                break
            try:
                answer = self._ask(toolbox.offered)
            except ToolsRefused:
                break
            if not answer.tool_calls:
                return self._finish(answer)
            self._call(answer, toolbox)
            if self.is_waiting:
                return None
        if not self._opening.model.takes_tools:
            self._look_up(toolbox)
        return self._finish(self._ask_for_text())

    def _ask_for_text(self) -> Answer:
        """The answer after the last round; of a model that still calls tools, what these found."""
        answer = self._ask(None)
        if reading.spoken(answer.text) or not self.following:
            return answer
        try:
            answer = self._ask(None, {"role": "user", "content": prompts.ANSWER_NOW})
            if reading.spoken(answer.text):
                return answer
        except ModelFailure as problem:
            log.warning("the answer is made of what the tools found: %s", problem)
            self.count(problem.usage)
        results = [message.content or "" for message in self.following if message.role == "tool"]
        return Answer(replies.from_results(self._opening.message.content, results))

    def _ask(self, offered: list[dict[str, Any]] | None, *reminders: dict[str, Any]) -> Answer:
        room = self._opening.room - (context.tokens(offered) if offered else 0)
        present = [*self._present, *reminders]
        messages = [self._opening.system, *context.fit(self._history.turns, present, room)]
        answer = self._opening.model.complete(
            messages, tools=offered, most=self._opening.most_answer, remembered=self._opening.recalled
        )
        self.count(answer.usage)
        if answer.tool_calls and offered:
            answer.require_whole()
        return answer

    def _call(self, answer: Answer, toolbox: Toolbox) -> list[dict[str, Any]]:
        """Run the tools that the model calls, unless one must be confirmed; returns their results."""
        calls = answer.tool_calls[:MAX_CALLS]
        self._spoken.append({**answer.message, "tool_calls": calls})
        self._present.append(self._spoken[-1])
        self._note(role="assistant", tool_calls=_encoded([_plain(call) for call in calls]))
        # What this round finds was not read when its calls were written.
        knew = self._has_foreign_text
        self._open = [self._handled(call, toolbox, has_foreign_text=knew) for call in calls]
        return [] if self.is_waiting else self._close_round()

    def _handled(self, call: dict[str, Any], toolbox: Toolbox, *, has_foreign_text: bool) -> Call:
        """The call with its result, or the person is asked."""
        one = Call(call["id"], call["function"]["name"], call["function"]["arguments"])
        to = toolbox.destination(one.name, one.arguments)
        if to is not None and (to.sensitive or (has_foreign_text and not self._trusts(one.name, to))):
            if self._opening.message.confirm:
                one.asked, one.arguments = confirmation.new_id(), to.arguments
                self.asked[one.asked] = to
                return one
            if self._settings.confirm_calls == "always":
                self._held_back.append(to._replace(arguments=one.name))
                if not to.sensitive:
                    one.result = confirmation.not_run(one.name, confirmation.UNANSWERED)
                    return one
        one.result = toolbox.run(one.name, one.arguments)
        return one

    def _trusts(self, tool: str, to: Destination) -> bool:
        """Whether the person wants no question before calls of this tool."""
        if to.trusted:
            return True
        with database.scope():
            return confirmation.is_allowed(self._opening.conversation_id, tool, to.server)

    def _close_round(self) -> list[dict[str, Any]]:
        """Note the results of the round, in the order of its calls, and return them."""
        results = [call.result or {} for call in self._open]
        for call, found in zip(self._open, results, strict=True):
            result = _encoded(found)
            self._present.append(
                {"role": "tool", "tool_call_id": call.id, "content": self._opening.frame.around(result)}
            )
            self._note(role="tool", content=result, tool_call_id=call.id, tool_name=found["tool"])
            self._has_foreign_text |= turns.is_foreign(self.following[-1])
        self._open, self._rounds = [], self._rounds + 1
        return results

    def _look_up(self, toolbox: Toolbox) -> None:
        """For a model that takes no tools: search for what the person asks, as the embedded model would."""
        results: list[dict[str, Any]] = []
        while calls := replies.next_searches(self._opening.message.content, results):
            results += self._call(Answer("", calls), toolbox)
        with database.scope():
            self._read_history()

    def _finish(self, answer: Answer) -> None:
        text = reading.spoken(answer.text)
        if not text:
            raise AnswerUnusable("The model gave no answer.")
        if answer.cut_off or len(text) > MAX_REPLY:
            text = f"{cut(text, MAX_REPLY)}\n\n{CUT_OFF[self._settings.language]}"
        if self._held_back:
            language = self._settings.language
            shown = dict.fromkeys(
                CALL_TO[language].format(tool=to.arguments, server=to.server) for to in self._held_back
            )
            text = f"{text}\n\n{HELD_BACK[language].format(calls=', '.join(shown))}"
        self.text = text
        with database.scope():
            self.citations = citations.of(text, answer.sources, self.following, gated=self._opening.gated)
        self._note(role="assistant", content=text, citations=citations.encoded(self.citations))

    def _note(self, **fields: Any) -> None:
        self.following.append(Message(created_at=self._clock(), **fields))

    def count(self, usage: Usage | None) -> None:
        """Add what a call of the model cost."""
        for name, number in msgspec.structs.asdict(usage or Usage()).items():
            setattr(self.usage, name, getattr(self.usage, name) + number)

    def _read_history(self) -> None:
        """Render this turn, and the earlier ones that fit, in the model's form. Needs a scope."""
        transcript = Transcript(self._opening.frame, self._opening.model.takes_tools, self._opening.gated)
        self._present = transcript.messages([self._opening.question, *self.following], pictures=True)
        asked = self._present[0]["content"]
        if self._opening.message.read and isinstance(asked, list):
            framed = self._opening.frame.around(cut(self._opening.message.read, prompts.MAX_READ))
            asked.append({"type": "text", "text": f"{prompts.READ_ON_PICTURE}\n{framed}"})
        if self._opening.model.takes_tools:
            calling = (at for at, message in enumerate(self._present) if message.get("tool_calls"))
            for at, spoken in zip(calling, self._spoken):  # noqa: B905 - none are kept of another model
                self._present[at] = spoken
        pictures = MAX_PICTURES - (self._opening.question.attachment_path is not None)
        self._history = transcript.history(
            turns.earlier_turns(self._opening.question), self._opening.room, pictures=pictures
        )


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _plain(call: dict[str, Any]) -> dict[str, Any]:
    """A call as it is stored and published: without the fields of a single provider."""
    function = call["function"]
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": function["arguments"]},
    }
