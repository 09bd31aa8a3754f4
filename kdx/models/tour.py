"""Travelling salesperson problem: a Transformer over a set of cities that points from each city to the next one."""

import math

import torch
from torch import Tensor, nn

from kdx.grid.spec import CellSpec
from kdx.models.set import set_attention_of
from kdx.models.transformer import Stack, initialise, linear_of
from kdx.vocabulary import Attention


class TourModel(nn.Module):
    """Maps the coordinates of cities to logits: for each city, which one comes next."""

    def __init__(self, spec: CellSpec) -> None:
        super().__init__()
        width = spec.model.width
        self.input = linear_of(2, width)
        self.encoder = Stack(spec, spec.model.encoder_layers, Attention.ENCODER_SELF, attention=set_attention_of)
        # A dot product for each pair of cities, as later work computes the pointer of Vinyals et al. 2015.
        self.leaves, self.enters = linear_of(width, width), linear_of(width, width)
        initialise(self, spec.model.initialisation)

    def forward(self, cities: Tensor) -> Tensor:
        """cities (B, n, 2) → logits (B, n, n): [i, j] of going from i to j."""
        x = self.encoder(self.input(cities))
        return self.leaves(x) @ self.enters(x).transpose(1, 2) / math.sqrt(x.size(-1))


def greedy_tours(logits: Tensor) -> Tensor:
    """Return each city's next one (B, n) on the tours from city 0 that always go to the likeliest unvisited city."""
    rows = torch.arange(len(logits), device=logits.device)
    scores = logits.clone()
    following = torch.zeros(logits.shape[:2], dtype=torch.long, device=logits.device)
    city = torch.zeros_like(rows)
    for _ in range(logits.size(1) - 1):
        scores[rows, :, city] = -torch.inf
        following[rows, city] = scores[rows, city].argmax(-1)
        city = following[rows, city]
    return following  # the last city goes to city 0


def tour_lengths(cities: Tensor, following: Tensor) -> Tensor:
    """Return the lengths (B,) of tours through cities (B, n, 2), given the city that follows each (B, n)."""
    ahead = cities.gather(1, following[:, :, None].expand_as(cities))
    return (ahead - cities).norm(dim=-1).sum(1)
