"""Terms: what text is cut into. The fast paths for ASCII give what the expressions alone give."""

from hypothesis import given
from hypothesis import strategies as st

import terms

WORDS = ("c++", "C#", "_c++", "a" * 65, "é", "İ", "ß", "今天", "ー", "한글", "ก")
ODD = (*WORDS, "\u0301", "\uff0c", "\xa0", "\ud800")
PIECES = st.lists(st.sampled_from([*"aZ09_ \n.-'+#", *ODD]), max_size=20).map("".join)


@given(PIECES)
def test_text_is_cut_and_squeezed_as_by_the_expressions_alone(text):
    squeezed = terms._NOT_A_LETTER.sub("", text.casefold())

    assert terms.cut(text) == terms._terms(text.casefold())
    assert terms.squeeze(text) == squeezed.replace("0", "o").replace("1", "l").replace("i", "l")
