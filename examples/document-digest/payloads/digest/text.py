"""Plain text analysis with the standard library: words, terms, an extractive summary."""

import math
import re
from collections import Counter

STOP_WORDS = frozenset(
    """a able about above across after again against all almost alone along already also although always am
    among an and another any anybody anyone anything are around as ask asks at away back be because become
    becomes been before begin behind being below best better between both but by came can cannot come comes
    could day did different do does doing done down during each early either else end ends enough even ever
    every everybody everyone everything exactly fail far few find first five for forget found four from full
    gave get gets give given gives go goes going gone good great had half hand hard has have having he hears
    help helps her here him his hold holds how however hundred i idea if in include instead into is it its
    itself just keep keeps kept kind knew know known knows large last later least leave leaves left less let
    like little long longer look looks lost made make makes many matter matters may me mean means meant might
    minute moment month more most much must my name near nearly need needs neither never new next no nobody none
    nor not nothing now number of off often old on once one ones only or order other others our out over own
    part past people perhaps person place plain possible put question quite rather reach read reads ready really
    reason right rule said same say says second see seen send sends several shall she should side simple since
    small so some somebody somebody's someone something sometimes soon still such sure take taken takes tell
    tells ten than that the their them themselves then there therefore these they thing things think third this
    those though thousand three through till time times to together too took towards tried try turn turns twenty
    twice two under until up upon us use used uses usually value very want wanted wants was way we week well
    went were what whatever when where whether which while who whoever whole whom whose why will wish with
    within without word words work works world worth would write writes written year yes yet you your yourself
    aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dem den der des die dies diese
    dieser dieses doch dort du durch ein eine einem einen einer eines er es etwas für gegen hat haben hier ich
    ihm ihn ihr ihre im in ist jede jeder jetzt kann kein keine mehr mein mit muss nach nicht noch nur ob oder
    ohne sein seine sich sie sind so über um und uns unter vom von vor war was weil wenn werden wie wir wird
    wurde wurden zu zum zur
    au aux avec car ce ces cette comme dans de des deux donc du elle elles en entre est et être eux faire fait
    il ils je la le les leur leurs lui mais même mes moi mon ne nos notre nous on ont ou où par pas peut plus
    pour qu que qui quoi sa sans se ses si son sont sous sur ta te tes ton tous tout très tu un une vos votre
    vous été
    al algo como con contra cuando del desde donde el ella ellos en era eran es esa ese eso esta este esto está
    están fue fueron ha han hasta hay la las le les lo los más mi mucho muy no nos nosotros o otra otro para
    pero por porque que quien se ser si sin sobre son su sus también te tiene todo todos un una uno unos y ya yo""".split()
)

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def words(sentence):
    return WORD.findall(sentence)


def fold(word):
    """One form for a word and its plural, good enough for counting: letters, crashes, copies."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 5 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def terms(sentence):
    """The words that carry meaning, and the pairs of them that stand side by side."""
    previous = None
    for word in words(sentence):
        term = fold(word)
        if len(term) < 3 or term in STOP_WORDS or word.lower() in STOP_WORDS:
            previous = None
            continue
        yield term
        if previous is not None:
            yield f"{previous} {term}"
        previous = term


def term_counts(sentences, keep):
    """The most frequent terms with their counts; a pair counts as a term from its second appearance on."""
    counts = Counter(term for sentence in sentences for term in terms(sentence))
    pairs_once = [term for term, count in counts.items() if " " in term and count == 1]
    for term in pairs_once:
        del counts[term]
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:keep])


def summary(sentences, count):
    """The sentences whose terms are the most frequent ones of the document, in reading order."""
    weights = term_counts(sentences, keep=40)

    def score(index):
        found = set(terms(sentences[index]))
        length = len(words(sentences[index]))
        if not 7 <= length <= 40 or sentences[index].endswith("?"):
            return 0.0
        # Long sentences hold more terms by their length alone; openings tend to say what the text is about.
        return sum(weights.get(term, 0) for term in found) / math.sqrt(length) * (1.25 if index < 4 else 1.0)

    best = sorted(range(len(sentences)), key=lambda index: (-score(index), index))[:count]
    return " ".join(sentences[index] for index in sorted(best))


def weigh(documents, keep):
    """Key terms of each document: frequent in it and rare in the others (tf-idf).

    `documents` is a list of term counts; the answer has one list of terms for each.
    """
    spread = Counter(term for counts in documents for term in counts)

    def score(term, count):
        rarity = math.log((1 + len(documents)) / (1 + spread[term])) + 1
        return (1 + math.log(count)) * rarity * (1.2 if " " in term else 1.0)

    chosen = []
    for counts in documents:
        ranked = sorted(counts, key=lambda term: (-score(term, counts[term]), term))
        terms_of_one = []
        for term in ranked:
            if len(terms_of_one) == keep:
                break
            # After "dead letter", neither "dead" nor "letter office" would tell anything new.
            if not any(set(term.split()) & set(other.split()) for other in terms_of_one):
                terms_of_one.append(term)
        chosen.append(terms_of_one)
    return chosen
