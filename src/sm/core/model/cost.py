"""What agents have used of a model, in tokens, and what that costs where the price of the model is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens of requests to one model, each in one of these."""

    input: int = 0
    """Neither from the cache nor for it."""
    cache_writes: int = 0
    """For five minutes."""
    long_cache_writes: int = 0
    """For an hour."""
    cache_reads: int = 0
    output: int = 0
    requests: int = 0

    @property
    def total(self) -> int:
        return self.input + self.cache_writes + self.long_cache_writes + self.cache_reads + self.output

    def plus(self, other: TokenCount, sign: int = 1) -> TokenCount:
        return TokenCount(
            self.input + sign * other.input,
            self.cache_writes + sign * other.cache_writes,
            self.long_cache_writes + sign * other.long_cache_writes,
            self.cache_reads + sign * other.cache_reads,
            self.output + sign * other.output,
            self.requests + sign * other.requests,
        )


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_write: float
    long_cache_write: float
    cache_read: float

    def of(self, tokens: TokenCount) -> float:
        priced = (
            (self.input, tokens.input),
            (self.cache_write, tokens.cache_writes),
            (self.long_cache_write, tokens.long_cache_writes),
            (self.cache_read, tokens.cache_reads),
            (self.output, tokens.output),
        )
        return sum(price * count for price, count in priced) / MILLION


ByModel = Mapping[str, TokenCount]


@dataclass(frozen=True, slots=True)
class Spending:
    tokens: TokenCount = TokenCount()
    usd: float = 0.0
    """Of the models whose price is known."""
    unpriced: tuple[str, ...] = ()
    """The other models."""


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the price of the longest name that the model's begins with: the rest is its date."""
    names = [name for name in prices if model.startswith(name)]
    return prices[max(names, key=len)] if names else None


def spending(used: ByModel, prices: Mapping[str, Price]) -> Spending:
    tokens, usd, unpriced = TokenCount(), 0.0, []
    for model, count in sorted(used.items()):
        tokens = tokens.plus(count)
        price = price_of(model, prices)
        if price is None:
            unpriced.append(model)
        else:
            usd += price.of(count)
    return Spending(tokens, usd, tuple(unpriced))


def together(used: Iterable[ByModel]) -> dict[str, TokenCount]:
    total: dict[str, TokenCount] = {}
    for by_model in used:
        for model, count in by_model.items():
            total[model] = total.get(model, TokenCount()).plus(count)
    return total
