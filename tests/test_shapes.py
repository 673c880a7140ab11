"""Rows as the shapes that are published: every field is there, under its name and in the contract's form."""

from datetime import datetime
from types import SimpleNamespace
from typing import TypedDict

import pytest

from models import Analysis
from web import shapes


class Animal(TypedDict):
    name: str
    born: shapes.Timestamp


class Cat(Animal):
    lives: int


BORN = datetime(2026, 11, 21, 7, 31, 4, 123_000)


@pytest.mark.parametrize("kind", [dict, SimpleNamespace])
def test_a_row_becomes_its_shape_with_inherited_fields_and_without_others(kind):
    row = kind(name="Tom", born=BORN, lives=9, secret="hush")

    assert shapes.of(row, Cat) == {"name": "Tom", "born": "2026-11-21T07:31:04.123", "lives": 9}


@pytest.mark.parametrize(("kind", "failure"), [(dict, KeyError), (SimpleNamespace, AttributeError)])
def test_a_field_that_the_row_does_not_have_must_be_given(kind, failure):
    row = kind(name="Tom", born=None)

    assert shapes.of(row, Cat, lives=9) == {"name": "Tom", "born": None, "lives": 9}
    with pytest.raises(failure, match="lives"):
        shapes.of(row, Cat)


def test_a_derived_field_wins_over_the_rows():
    assert shapes.of({"name": "", "born": None}, Animal, name="Tom") == {"name": "Tom", "born": None}


def test_a_list_selects_the_columns_of_its_shape_only():
    sql, _ = Analysis.select(*shapes.columns(Analysis, shapes.AnalysisFields)).sql()

    assert '"photo_id" AS "photo_id"' in sql
    assert '"summary"' in sql
    assert "llm_response" not in sql
