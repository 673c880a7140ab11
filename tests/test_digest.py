"""What the embedded model writes by itself."""

from datetime import datetime

import msgspec
import pytest

from engines import digest
from engines.articles import Material, RecentNote
from tests.support.material import BEFORE, MATERIAL, NOW, RECIPE


@pytest.mark.parametrize(
    ("language", "report", "reminder", "summary"),
    [
        (
            "en",
            "New on 2026-11-21",
            "Don't forget: The electricity bill is due. and 1 more",
            "3 screenshots, 1 conversation: Mail, ",
        ),
        (
            "zh",
            "2026年11月21日新内容",
            "别忘了：The electricity bill is due. 等 2 项",
            "3 张截图、1 个对话：Mail、Messages、网页、对话",
        ),
    ],
)
def test_the_embedded_model_writes_a_report_and_a_reminder_that_cite_what_they_name(
    language, report, reminder, summary
):
    written = digest.write(MATERIAL, language)
    first, second = written.articles

    assert written.usage.calls == 0
    assert (first.category, first.title, first.photo_ids, first.conversation_ids) == (
        "reminder",
        reminder,
        [12, 13],
        [],
    )
    assert "Dec 1" in first.content
    assert "€ 48.20" in first.summary
    assert "Dentist on Friday" in first.content
    assert (second.category, second.title, second.photo_ids, second.conversation_ids) == (
        "report",
        report,
        [12, 13, 14],
        ["c0ffee"],
    )
    assert second.summary.startswith(summary)
    assert all(word in second.content for word in ("### Mail (1)", "### Messages (1)", "leek soup", "Soup"))
    assert max(first.confidence, second.confidence) <= 0.5


def test_a_digest_without_dates_to_keep_is_only_a_report_that_continues_the_days_earlier_one():
    (first,) = digest.write(Material(NOW, [RECIPE]), "en").articles
    (second,) = digest.write(
        Material(NOW, [RECIPE], notes=[BEFORE, RecentNote(9, first.title, "", "report")]), "en"
    ).articles
    (next_day,) = digest.write(
        Material(datetime(2026, 11, 22), [RECIPE], notes=[RecentNote(9, first.title, "", "report")]), "en"
    ).articles

    assert first.summary == "1 screenshot: Web pages"
    assert (first.updates, second.updates, next_day.updates) == (None, 9, None)


def test_a_digest_of_much_is_short():
    many = [msgspec.structs.replace(RECIPE, id=number + 1) for number in range(200)]
    (report,) = digest.write(Material(NOW, many), "en").articles

    assert report.content.count("\n- ") == digest.MOST_LINES + 1
    assert "and 194 more" in report.content
    assert len(report.photo_ids) == 200
