"""svc/content/stem.py against examples of Porter's own paper."""

import pytest

from svc.content.stem import stem

EXAMPLES = """
caresses caress
ponies poni
ties ti
caress caress
cats cat
feed feed
agreed agre
plastered plaster
bled bled
motoring motor
sing sing
conflated conflat
troubled troubl
sized size
hopping hop
tanned tan
falling fall
hissing hiss
fizzed fizz
failing fail
filing file
happy happi
sky sky
relational relat
conditional condit
rational ration
digitizer digit
operator oper
decisiveness decis
hopefulness hope
formality formal
sensibility sensibl
triplicate triplic
formative form
formalize formal
electrical electr
hopeful hope
goodness good
revival reviv
allowance allow
inference infer
airliner airlin
adjustable adjust
defensible defens
irritant irrit
replacement replac
adjustment adjust
dependent depend
adoption adopt
communism commun
activate activ
effective effect
bowdlerize bowdler
probate probat
rate rate
cease ceas
controlling control
rolling roll
by by
"""


@pytest.mark.parametrize(("word", "wanted"), [line.split() for line in EXAMPLES.split("\n") if line])
def test_a_word_has_the_stem_of_the_paper(word: str, wanted: str) -> None:
    assert stem(word) == wanted
