"""Records as they are stored, listed and corrected."""

import dataclasses
import io
import json
from datetime import datetime

import msgspec
import pytest

import database
import dynamics
import lexicon
import readings
import records
from analysis.pool import Worker
from app import create_app
from database import db
from engines.articles import Article
from engines.lines import Line, Page
from engines.reading import read_findings
from engines.records import Field, Record, checked, placed
from models import Analysis
from models import Record as Row
from rules import embedded
from tests.support.client import Client
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS
from tests.support.library import Library

RECEIPT = Record(
    "Receipt",
    [
        Field("seller", "REWE Markt", "REWE Markt GmbH", [0]),
        Field("total", {"value": "23.80", "currency": "EUR"}, "SUMME EUR 23,80", [3]),
        Field("date", "2026-11-20T18:02", "20.11.26 18:02", [4]),
    ],
    "local",
    0.5,
)


def receipt(seller="REWE", value="23.80", currency="EUR", day="2026-11-20"):
    amount = {"value": value, "currency": currency}
    fields = [Field("seller", seller), Field("total", amount), Field("date", day)]
    return Record("Receipt", fields)


@pytest.fixture
def library(app, settings):
    """The store of `client`, for rows without files."""
    return Library(settings.data_dir)


def put(library, found, text="Some text", **options):
    """A photo with records."""
    photo_id = library.add(text, **options)
    with database.scope(), db.atomic():
        stored = records.encoded(found)
        Analysis.update(records=stored).where(Analysis.photo == photo_id).execute()
        records.file([photo_id])
    return photo_id


def test_what_a_template_made_is_shown_in_the_language_that_is_asked_for(client, library):
    english = {
        "title": "REWE Markt €23.80, 20 Nov",
        "summary": "Receipt from REWE Markt: €23.80 on Fri 20 Nov 18:02.",
    }
    chinese = {
        "title": "REWE Markt €23.80，11月20日",
        "summary": "REWE Markt的收据：€23.80，11月20日 周五 18:02。",
    }
    made, written = put(library, [RECEIPT]), put(library, [RECEIPT])
    with database.scope():
        Analysis.update(**english).where(Analysis.photo == made).execute()
        Analysis.update(title="Dinner", summary="With Ida.").where(Analysis.photo == written).execute()

    def shown(language=""):
        headers = {"Accept-Language": language}
        listed = {one["id"]: one for one in client.get("/api/photos", headers=headers).json["items"]}
        details = {photo: client.get(f"/api/photos/{photo}", headers=headers).json for photo in listed}
        for photo, detail in details.items():
            assert all(detail[name] == listed[photo][name] for name in english)
        return [{name: details[photo][name] for name in english} for photo in (made, written)]

    own = {"title": "Dinner", "summary": "With Ida."}
    assert shown() == shown(language="en-GB") == shown(language="*") == [english, own]
    assert shown(language="zh-CN, en") == [chinese, own]
    client.patch(f"/api/photos/{made}", json={"title": "Groceries"})
    assert shown(language="zh") == [{**chinese, "title": "Groceries"}, own]


def test_a_note_is_shown_in_the_language_that_is_asked_for_with_the_words_of_its_screenshots(client, library):
    made = put(library, [RECEIPT])
    with database.scope():
        title, summary = "REWE Markt €23.80, 20 Nov", "Receipt from REWE Markt: €23.80 on Fri 20 Nov 18:02."
        Analysis.update(title=title, summary=summary).where(Analysis.photo == made).execute()
        content = f"On **Fri 20 Nov**: {summary}\n\nMy own line"
        article = Article(title, content, f"On Fri 20 Nov: {summary}", "reminder", photo_ids=[made])
        note = dynamics.add(article, {made: "pixel"}, now=datetime(2026, 11, 20)).id

    def shown(language):
        headers = {"Accept-Language": language}
        [listed] = client.get("/api/dynamics", headers=headers).json["items"]
        found = client.get(f"/api/dynamics/{note}", headers=headers).json
        assert (listed["title"], listed["summary"]) == (found["title"], found["summary"])
        return found["title"], found["summary"], found["content"]

    assert shown("en") == shown("*") == (article.title, article.summary, article.content)
    said = "REWE Markt的收据：€23.80，11月20日 周五 18:02。"
    assert shown("zh-CN") == (
        "REWE Markt €23.80，11月20日",
        f"11月20日：{said}",
        f"**11月20日**：{said}\n\nMy own line",
    )


def test_the_detail_of_a_photo_has_its_records(client, library):
    photo_id = put(library, [RECEIPT])
    shown = client.get(f"/api/photos/{photo_id}").json
    (record,) = shown["records"]
    assert record["type"] == "Receipt"
    assert record["source"] == "local"
    assert record["fields"][1] == {
        "name": "total",
        "value": {"value": "23.80", "currency": "EUR"},
        "text": "SUMME EUR 23,80",
        "lines": [3],
    }
    assert client.get("/api/records").json["records"][0]["id"] == record["id"]
    assert "records" not in shown["own"]


def test_lists_and_hits_have_the_main_record_in_one_line(client, library):
    photo_id, without = put(library, [RECEIPT, receipt("Aldi")]), library.add("Other text")
    items = {item["id"]: item["record"] for item in client.get("/api/photos").json["items"]}
    assert items[photo_id]["type"] == "Receipt"
    assert "REWE Markt" in items[photo_id]["line"]
    assert items[without] is None
    assert client.get("/api/search?q=some").json["items"][0]["record"] == items[photo_id]


def test_records_are_listed_by_their_days_with_sums_over_all_of_them(client, library):
    for seller, value, currency, day in (
        ("REWE", "23.80", "EUR", "2026-11-20"),
        ("Rewe City", "0.10", "EUR", "2026-11-02"),
        ("Aldi", "0.20", "EUR", "2026-10-31"),
        ("Coop", "7.5", "CHF", "2026-11-21"),
    ):
        put(library, [receipt(seller, value, currency, day)])
    undated = put(library, [Record("ErrorMessage", [Field("text", "No space left")])])

    everything = client.get("/api/records?page_size=2").json
    assert everything["total"] == 5
    assert len(everything["records"]) == 2
    assert everything["records"][0]["photo_id"] == undated  # of the day on which it was taken
    assert everything["records"][0]["day"] == "2026-11-21"
    assert everything["sums"] == [
        {"currency": "EUR", "value": "24.10", "count": 3},
        {"currency": "CHF", "value": "7.5", "count": 1},
    ]

    def found(query):
        answer = client.get(f"/api/records?{query}").json
        return answer["total"], {one["currency"]: one["value"] for one in answer["sums"]}

    assert found("seller=rewe") == (2, {"EUR": "23.90"})
    assert found("since=2026-11-01&until=2026-11-20") == (2, {"EUR": "23.90"})
    assert found("type=ErrorMessage") == (1, {})
    assert found("type=ErrorMessage&type=Receipt") == (5, {"EUR": "24.10", "CHF": "7.5"})
    assert found("q=space+left") == (1, {})
    assert found("q=ace") == (0, {})
    assert found("q=city&seller=rewe") == (1, {"EUR": "0.10"})


@pytest.mark.parametrize("query", ["type=Bill", "since=2026-13-01", "until=tomorrow"])
def test_a_wrong_filter_is_named(client, library, query):
    answer = client.get(f"/api/records?{query}")
    assert answer.status_code == 400
    assert answer.json["detail"].startswith(query.partition("=")[0])


def test_a_seller_is_found_by_the_beginning_of_a_word_and_in_chinese_anywhere(client, library):
    put(library, [receipt("Café Müller")])
    put(library, [receipt("上海星巴克咖啡")])

    def found(seller):
        return client.get("/api/records", query_string={"seller": seller}).json["total"]

    assert [found(name) for name in ("cafe", "muller", "MÜLL", "星巴克", "afe", "上海")] == [1, 1, 1, 1, 0, 1]


def test_a_correction_wins_and_what_was_read_comes_back(client, library):
    photo_id = put(library, [RECEIPT])
    own = {
        "type": "Receipt",
        "fields": [
            {"name": "seller", "value": "Edeka"},
            {"name": "total", "value": {"value": "12.00", "currency": "EUR"}},
        ],
    }
    answer = client.patch(f"/api/photos/{photo_id}", json={"records": [own]})
    assert answer.status_code == 200, answer.json
    (record,) = answer.json["records"]
    assert record["source"] == "person"
    assert record["confidence"] == 1.0
    assert record["fields"][0]["value"] == "Edeka"
    assert answer.json["own"] == ["records"]
    assert client.get("/api/records?seller=edeka").json["total"] == 1
    assert client.get("/api/records?seller=rewe").json["total"] == 0

    again = client.patch(f"/api/photos/{photo_id}", json={"records": None}).json
    assert again["records"][0]["fields"][0]["value"] == "REWE Markt"
    assert again["own"] == []
    assert client.get("/api/records?seller=rewe").json["total"] == 1

    nothing = client.patch(f"/api/photos/{photo_id}", json={"records": []}).json
    assert (nothing["records"], nothing["own"]) == ([], ["records"])
    assert client.get("/api/records").json["total"] == 0
    assert client.get("/api/photos").json["items"][0]["record"] is None


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ({"type": "Bill", "fields": []}, "Bill"),
        ({"type": "Receipt", "fields": [{"name": "shop", "value": "REWE"}]}, "shop"),
        ({"type": "Receipt", "fields": [{"name": "total", "value": "23.80"}]}, "total"),
        ({"type": "Receipt", "fields": [{"name": "seller", "value": "REWE"}]}, "seller and total"),
        ({"type": "Appointment", "fields": [{"name": "startTime", "value": "tomorrow"}]}, "startTime"),
    ],
)
def test_a_correction_that_is_no_record_is_refused(client, library, own, named):
    photo_id = put(library, [RECEIPT])
    answer = client.patch(f"/api/photos/{photo_id}", json={"records": [own], "title": "Not saved"})
    assert answer.status_code == 400
    assert answer.json["detail"].startswith("records: ")
    assert named in answer.json["detail"]
    assert client.get(f"/api/photos/{photo_id}").json["title"] != "Not saved"


def test_records_go_to_the_trash_with_their_photo_and_come_back(client, library):
    photo_id = put(library, [RECEIPT])
    client.post(f"/api/photos/{photo_id}/trash")
    assert client.get("/api/records").json["total"] == 0
    (item,) = client.get("/api/photos?trash=true").json["items"]
    assert item["record"]["type"] == "Receipt"
    client.post(f"/api/photos/{photo_id}/restore")
    assert client.get("/api/records").json["total"] == 1
    client.delete(f"/api/photos/{photo_id}")
    with database.scope():
        assert not Row.select().exists()


def test_what_is_sensitive_leaves_by_no_list(library):
    code = Record("OneTimeCode", [Field("code", "482913"), Field("service", "Harbor Bank")])
    wifi = Record("WifiNetwork", [Field("ssid", "Harbor Guests"), Field("password", "ferry-44-lights")])
    paid = Record(
        "MoneyTransfer",
        [
            Field("amount", {"value": "5", "currency": "EUR"}),
            Field("beneficiary", "Harbor Club"),
            Field("iban", "DE89370400440532013000"),
        ],
    )
    told = Record("ErrorMessage", [Field("text", "Harbor: password: tr0ub4dor&3")])
    for one in (code, wifi, paid, told):
        put(library, [one])

    def found(text="", *, guarded):
        with database.scope():
            total, listed, _ = records.listed(records.Wanted(text=text), 1, 10, guarded=guarded)
        assert total == len(listed)
        return sorted(
            f"{one.record.type} {' '.join(field.name for field in one.record.fields)}" for one in listed
        )

    assert len(found(guarded=False)) == 4
    assert found(guarded=True) == ["MoneyTransfer amount beneficiary", "WifiNetwork ssid"]
    for secret in ("482913", "ferry-44-lights", "DE89370400440532013000", "tr0ub4dor&3"):
        assert len(found(secret, guarded=False)) == 1
        assert found(secret, guarded=True) == []
    assert len(found("harbor", guarded=True)) == 2


def test_a_record_of_a_photo_that_is_withheld_is_in_no_guarded_list(client, library):
    photo_id = put(library, [RECEIPT], "Card number 4532 0151 1283 0366\nREWE")
    with database.scope(), db.atomic():
        Analysis.update(sensitive="card").where(Analysis.photo == photo_id).execute()
        lexicon.redact_anew([photo_id])
    with database.scope():
        assert records.listed(records.Wanted(), 1, 10)[0] == 1
        assert records.listed(records.Wanted(), 1, 10, guarded=True)[0] == 0
    client.patch(f"/api/photos/{photo_id}", json={"sensitive": []})
    with database.scope():
        assert records.listed(records.Wanted(), 1, 10, guarded=True)[0] == 1


def test_lines_are_found_again_by_the_words():
    lines = ["9:41", "REWE Markt", "GmbH", "Bananas", "SUMME EUR 23,80", "20.11.26 18:02"]
    found = placed(RECEIPT, lines)
    assert [field.lines for field in found.fields] == [[1, 2], [4], [5]]
    gone = placed(Record("Receipt", RECEIPT.fields, "model", 0.9), lines[:4])
    assert [field.lines for field in gone.fields] == [[1, 2], [], []]
    assert gone.confidence == 0.5
    listed = Record("TaskList", [Field("entries", [{"name": "Bananas"}, {"name": "GmbH"}])])
    assert placed(checked(listed), lines).fields[0].lines == [2, 3]


ANSWERED = {
    **FINDINGS,
    "records": [
        {
            "type": "Receipt",
            "fields": [
                {"name": "seller", "value": "REWE", "text": "REWE Markt"},
                {"name": "total", "value": {"value": "23.80", "currency": "eur"}, "text": "EUR 23,80"},
                {"name": "date", "value": "yesterday", "text": "20.11."},
                {"name": "shop", "value": "REWE"},
                {"name": "items", "value": [["Bananas", "1.2 kg"], "Milk"], "text": ""},
            ],
        },
        {"type": "Bill", "fields": []},
        {"type": "Recipe", "fields": {"name": "Soup"}},
    ],
}


def test_a_remote_model_is_asked_for_records_which_are_checked_field_by_field():
    (record,) = read_findings(json.dumps(ANSWERED)).records
    assert (record.type, record.source) == ("Receipt", "model")
    assert {field.name: field.value for field in record.fields} == {
        "seller": "REWE",
        "total": {"value": "23.80", "currency": "EUR"},
        "items": [{"name": "Bananas", "quantity": "1.2 kg"}, {"name": "Milk"}],
    }
    assert record.confidence == 0.5  # as long as no line has its values


def test_a_remote_models_values_are_found_on_the_lines_that_were_read(fake_llm, remote):
    client = Client(create_app(dataclasses.replace(remote, read_locally=False)))
    fake_llm.answer(ANSWERED)
    fake_llm.answer(ANSWERED)
    read, unread = (upload(client, name) for name in ("one", "two"))
    lines = ["REWE Markt", "Bananas", "Milk 0.99", "SUMME EUR 23,80"]
    page = Page(400, 800, [Line(text, 0.9, 10, at * 50, 200, at * 50 + 40) for at, text in enumerate(lines)])
    with database.scope(), db.atomic():
        readings.save(read, page, reader="small")
    worker = Worker(remote)
    while worker.work():
        pass
    worker.close()

    (record,) = client.get(f"/api/photos/{read}").json["records"]
    assert [field["lines"] for field in record["fields"]] == [[0], [3], [1, 2]]
    assert record["confidence"] == FINDINGS["confidence"]
    (without,) = client.get(f"/api/photos/{unread}").json["records"]
    assert without["confidence"] == 0.5
    asked = fake_llm.requests[0]
    assert "ParcelDelivery: carrier, trackingNumber" in asked.text
    assert "The picture was taken on 2026-" in asked.text
    schema = asked.body["response_format"]["json_schema"]["schema"]
    assert all_closed(schema)


def test_where_a_remote_model_says_nothing_of_records_the_rules_find_them(fake_llm, remote, monkeypatch):
    client = Client(create_app(dataclasses.replace(remote, read_locally=False)))
    judge = embedded.judge

    def judged(page, **named):
        return msgspec.structs.replace(judge(page, **named), records=[RECEIPT])

    monkeypatch.setattr(embedded, "judge", judged)
    fake_llm.answer(FINDINGS)
    fake_llm.answer({**FINDINGS, "records": []})
    silent, without = (upload(client, name) for name in ("one", "two"))
    with database.scope(), db.atomic():
        for photo in (silent, without):
            readings.save(photo, Page(400, 800, [Line("REWE Markt", 0.9, 10, 10, 90, 40)]), reader="small")
    worker = Worker(remote)
    while worker.work():
        pass
    worker.close()

    (record,) = client.get(f"/api/photos/{silent}").json["records"]
    assert record["source"] == "local"
    assert client.get(f"/api/photos/{without}").json["records"] == []


def all_closed(schema):
    """Whether every object of a schema is as strict servers demand it."""
    if isinstance(schema, list):
        return all(map(all_closed, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" and (
        schema["additionalProperties"] is not False or schema["required"] != list(schema["properties"])
    ):
        return False
    return all(map(all_closed, schema.values()))


def upload(client, name):
    file = (io.BytesIO(draw(name)), f"{name}.png")
    return client.post("/api/photos/upload", data={"file": file}).json["id"]


# ------------------------------------------------------------------------------------------------- proposals


def slip(
    library, total, subtotal, *, seller="Frischemarkt Lindner", misread="Frischemarkt Lindner", read="total"
):
    """A receipt of a seller whose total was read from the subtotal, unless `read` is "right"."""
    rows = (seller, "Zwischensumme", subtotal, "Versand", "4,90 €", "Gesamtbetrag", total, "21.11.2026")
    lines = []
    for number, text in enumerate(rows):
        right = number in (2, 4, 6)
        top = 100 + 60 * (number - right)
        lines.append(Line(text, 0.98, 700 if right else 60, top, 900 if right else 400, top + 40))
    place = 6 if read == "right" else 2
    value = rows[place].removesuffix(" €").replace(",", ".")
    fields = [
        Field("seller", misread, seller, [0]),
        Field("total", {"value": value, "currency": "EUR"}, rows[place], [place]),
    ]
    photo_id = put(library, [Record("Receipt", fields)], "\n".join(rows))
    with database.scope(), db.atomic():
        readings.save(photo_id, Page(1080, 2340, lines), reader="small")
    return photo_id


def correct(client, photo_id, **values):
    """Correct fields of the only record of a photo, as the page does."""
    (record,) = client.get(f"/api/photos/{photo_id}").json["records"]
    fields = [
        {"name": field["name"], "value": values[field["name"]]} if field["name"] in values else field
        for field in record["fields"]
    ]
    own = [{"type": record["type"], "fields": fields}]
    answer = client.patch(f"/api/photos/{photo_id}", json={"records": own})
    assert answer.status_code == 200, answer.json


def amount(value):
    return {"value": value, "currency": "EUR"}


def totals(client, *photo_ids):
    return [
        client.get(f"/api/photos/{one}").json["records"][0]["fields"][1]["value"]["value"]
        for one in photo_ids
    ]


def test_a_corrected_total_proposes_that_of_the_same_label_on_receipts_of_the_same_seller(client, library):
    first, second, third = (
        slip(library, *one) for one in (("24,80 €", "19,90 €"), ("9,15 €", "4,25 €"), ("54,90 €", "50,00 €"))
    )
    other = slip(library, "8,00 €", "3,10 €", seller="Nordlicht Laden", misread="Nordlicht Laden")
    right = slip(library, "7,00 €", "2,10 €", read="right")
    assert client.get(f"/api/photos/{first}/proposals").json == {"proposals": []}

    correct(client, first, total=amount("24.80"))
    (proposal,) = client.get(f"/api/photos/{first}/proposals").json["proposals"]
    assert (proposal["type"], proposal["field"]) == ("Receipt", "total")
    assert proposal["party"] == "Frischemarkt Lindner"
    assert {one["photo_id"]: one["after"]["value"] for one in proposal["photos"]} == {
        second: "9.15",
        third: "54.90",
    }
    assert totals(client, second, third, other, right) == ["4.25", "50.00", "3.10", "7.00"]

    answer = client.post(
        f"/api/photos/{first}/proposals", json={"field": "total", "photo_ids": [second, other]}
    )
    assert answer.json == {"corrected": [second]}
    assert totals(client, second, third, other) == ["9.15", "50.00", "3.10"]
    detail = client.get(f"/api/photos/{second}").json
    assert detail["records"][0]["source"] == "person"
    assert detail["records"][0]["fields"][1]["lines"] == [6]
    (proposal,) = client.get(f"/api/photos/{first}/proposals").json["proposals"]
    assert [one["photo_id"] for one in proposal["photos"]] == [third]

    client.patch(f"/api/photos/{second}", json={"records": None})
    assert totals(client, second) == ["4.25"]


def test_a_corrected_name_is_proposed_where_the_same_was_read_and_an_amount_never(client, library):
    first, second = (
        slip(library, *one, misread="Frischemarkt Llndner")
        for one in (("24,80 €", "19,90 €"), ("9,15 €", "4,25 €"))
    )
    correct(client, first, seller="Frischemarkt Lindner", total=amount("99.99"))
    (proposal,) = client.get(f"/api/photos/{first}/proposals").json["proposals"]
    assert proposal["field"] == "seller"
    assert [(one["photo_id"], one["after"]) for one in proposal["photos"]] == [
        (second, "Frischemarkt Lindner")
    ]
    client.post(f"/api/photos/{first}/proposals", json={"field": "seller", "photo_ids": [second]})
    assert client.get("/api/records?seller=lindner").json["total"] == 2


def test_proposals_need_a_photo(client, library):
    first = slip(library, "24,80 €", "19,90 €")
    client.post(f"/api/photos/{first}/trash")
    assert client.get(f"/api/photos/{first}/proposals").status_code == 404
    assert (
        client.post("/api/photos/99/proposals", json={"field": "total", "photo_ids": []}).status_code == 404
    )
