"""The reading of requests: what becomes an object, and the sentence for what cannot be read."""

import io
from datetime import datetime
from typing import Annotated, Literal

import flask
import msgspec
import pytest
from msgspec import Meta
from werkzeug.datastructures import FileStorage

from errors import SnaploreError
from web import inputs


class Fields(msgspec.Struct):
    count: Annotated[int, Meta(ge=1, le=9)] = 1
    whole: Annotated[int, Meta(ge=0)] = 0
    share: Annotated[float, Meta(ge=0, le=2)] | None = None
    ratio: Annotated[float, Meta(ge=0)] = 0.0
    kind: Literal["a", "b"] = "a"
    shade: Annotated[Literal["r", "g"], Meta(description="a colour")] = "r"
    code: Annotated[str, Meta(pattern=r"^[a-z]+\Z", description="small letters")] = "x"
    plain: Annotated[str, Meta(description="any words", max_length=3)] = ""
    flag: bool = False
    name: Annotated[str, Meta(min_length=1, max_length=3)] | None = None
    free: inputs.AnyText = ""
    several: list[int] = []
    page: inputs.Page = 1
    size: inputs.PageSize = 20


class Required(msgspec.Struct):
    name: str


class Request(inputs.Request):
    def open_spool(self, largest):
        return io.BytesIO()


@pytest.fixture(scope="module")
def client():
    """A client of an application with a route for each way of giving something."""
    app = flask.Flask(__name__)
    app.request_class = Request
    app.before_request(inputs.receive)
    app.register_error_handler(SnaploreError, lambda problem: (problem.detail, problem.status))

    @app.get("/query")
    @inputs.operation()
    def of_query(query: Fields) -> dict:
        return msgspec.structs.asdict(query)

    @app.post("/form")
    @inputs.operation()
    def of_form(form: Fields) -> dict:
        return msgspec.structs.asdict(form)

    @app.post("/body/<int:number>")
    @inputs.operation()
    def of_body(number: int, body: Fields) -> dict:
        return {"number": number, **inputs.given(body)}

    @app.post("/required")
    @inputs.operation()
    def of_required(body: Required) -> dict:
        return msgspec.structs.asdict(body)

    @app.post("/file")
    @inputs.takes_files(largest=1_000)
    @inputs.operation()
    def of_file(file: FileStorage) -> dict:
        return {"size": len(file.read())}

    @app.post("/perhaps")
    @inputs.takes_files(largest=1_000)
    @inputs.operation()
    def of_perhaps(file: FileStorage | None) -> dict:
        return {"size": None if file is None else len(file.read())}

    @app.post("/files")
    @inputs.takes_files(largest=1_000, most=2)
    @inputs.operation()
    def of_files(files: list) -> dict:
        return {"sizes": [len(file.read()) for file in files]}

    return app.test_client()


def file(size=1, name="a.png"):
    return io.BytesIO(bytes(size)), name


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"count": 0}, "count: must be between 1 and 9"),
        ({"count": 10}, "count: must be between 1 and 9"),
        ({"page": 0}, "page: must be between 1 and 1000000000"),
        ({"page": 1_000_000_001}, "page: must be between 1 and 1000000000"),
        ({"size": 0}, "size: must be between 1 and 100"),
        ({"size": 101}, "size: must be between 1 and 100"),
        ({"whole": 1.5}, "whole: must be a whole number"),
        ({"share": 2.5}, "share: must be between 0 and 2"),
        ({"ratio": -1}, "ratio: cannot be read"),
        ({"kind": "c"}, "kind: must be one of a, b"),
        ({"shade": "b"}, "shade: must be a colour"),
        ({"code": "A"}, "code: must be small letters"),
        ({"plain": "abcd"}, "plain: must be at most 3 characters"),
        ({"flag": "perhaps"}, "flag: must be true or false"),
        ({"name": "abcd"}, "name: must be at most 3 characters"),
        ({"name": "a\0"}, "name: must not contain a NUL character"),
    ],
)
def test_a_field_that_cannot_be_read_is_named_with_its_demand(client, values, sentence):
    answers = [
        client.get("/query", query_string=values),
        client.post("/form", data=values),
        client.post("/body/1", json=values),
    ]

    assert [(answer.status_code, answer.text) for answer in answers] == [(400, sentence)] * 3


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"count": "5"}, "count: must be between 1 and 9"),
        ({"name": ""}, "name: must not be empty"),
        ({"name": 7}, "name: must be a text"),
        ({"plain": 7}, "plain: must be a text"),
        ({"several": [1, "x"]}, "several: each entry must be a whole number"),
        ([], "body: must be a JSON object"),
    ],
)
def test_a_json_body_is_read_by_its_types(client, values, sentence):
    answer = client.post("/body/1", json=values)

    assert (answer.status_code, answer.text) == (400, sentence)


def test_a_body_without_json_and_one_without_a_required_field_are_refused(client):
    for raw in (b"{", b"\xff", b"[" * 100_000):
        assert client.post("/body/1", data=raw).text == "body: is not valid JSON"
    assert client.post("/required", json={}).text == "name: is missing"


def test_what_is_within_its_limits_is_given(client):
    low = {"count": 1, "share": 0.0, "name": "a", "page": 1, "size": 1, "free": "\0", "plain": "abc"}
    high = {"count": 9, "share": 2.0, "name": "abc", "page": 1_000_000_000, "size": 100, "whole": 7}
    for values in (low, high):
        for answer in (client.get("/query", query_string=values), client.post("/form", data=values)):
            assert {name: answer.json[name] for name in values} == values
        assert client.post("/body/5", json=values).json.items() >= {"number": 5, **values}.items()


def test_an_empty_value_is_absent_and_null_is_a_text_of_a_query(client):
    assert client.get("/query?count=&name=").json["count"] == 1
    assert client.post("/form", data={"name": ""}).json["name"] is None
    assert client.get("/query?share=null").text == "share: must be between 0 and 2"
    for raw in (b"", b" \n", b"{}", b'{"name": null}'):
        assert "name" not in client.post("/body/1", data=raw).json


def test_a_body_is_at_most_a_megabyte_and_a_form_as_much_beyond_its_files(client):
    assert client.post("/body/1", data=b"{}".ljust(1_048_576)).status_code == 200
    refused = client.post("/body/1", data=b"{}".ljust(1_048_577))
    assert (refused.status_code, refused.text) == (
        413,
        "The request is larger than the 1 MB that this path accepts.",
    )

    for name, most in (("file", 1), ("files", 2)):
        head = f'--x\r\nContent-Disposition: form-data; name="{name}"; filename="a"\r\n\r\n'.encode()
        end = b"\r\n--x--\r\n"
        room = most * 1_000 + 1_048_576 - len(head + end)
        for size, status in ((room, 200), (room + 1, 413)):
            form = head + bytes(size) + end
            answer = client.post(f"/{name}", data=form, content_type="multipart/form-data; boundary=x")
            assert answer.status_code == status


def test_files_are_as_many_as_the_route_takes(client):
    assert client.post("/files", data={"files": [file(1), file(2)]}).json == {"sizes": [1, 2]}
    assert client.post("/files", data={"files": [file()] * 3}).text == "files: must be at most 2 files"
    for path, name in (("/files", "files"), ("/file", "file")):
        missing = client.post(path, data={"other": "x"})
        assert missing.text == f"{name}: is missing; send it as a file in multipart/form-data"

    assert client.post("/file", data={"file": file(3)}).json == {"size": 3}
    assert client.post("/file", data={"file": [file(), file()]}).text == "file: must be at most 1 files"
    assert client.post("/perhaps", data={"file": file(3)}).json == {"size": 3}
    assert client.post("/perhaps", data={"file": file(0, "")}).json == {"size": None}
    assert client.post("/perhaps", data={"file": [file(), file()]}).text == "file: must be a single file"


def test_a_list_has_an_entry_for_each_file_and_a_time_is_in_milliseconds():
    assert inputs.listed("ids", " ", most=2) == ["", ""]
    assert inputs.listed("ids", "a", most=2) == ["a", ""]
    assert inputs.listed("ids", "a, b", most=2) == ["a", "b"]
    with pytest.raises(SnaploreError, match="ids: has 3 entries for 2 files"):
        inputs.listed("ids", "a,b,c", most=2)

    assert inputs.moment("since", "") is None
    assert inputs.moment("since", "1795262400500") == datetime(2026, 11, 21, 12, 0, 0, 500_000)
    for value, problem in (
        ("soon", "must be epoch milliseconds, in digits"),
        ("9" * 16, "must be epoch milliseconds, in digits"),
        ("9" * 15, "is too far in the future"),
    ):
        with pytest.raises(SnaploreError, match=f"since: {problem}"):
            inputs.moment("since", value)


def test_the_signature_of_a_route_is_what_it_publishes(client):
    published = client.application.view_functions["of_body"].operation

    assert published == inputs.Operation({"body": Fields}, {"number": int}, dict, ())
