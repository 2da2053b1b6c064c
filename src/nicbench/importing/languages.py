"""What columns are called in other languages: German and French."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

_ABROAD: Final = MappingProxyType(
    {
        "frame size": (
            *("Rahmengröße", "Framegröße", "Frame-Größe", "Paketgröße", "Paketlänge", "Rahmenlänge", "Framelänge"),
            *("Paketgroesse", "Rahmengroesse", "Framegroesse", "taille de trame", "taille des trames"),
            *("taille de paquet", "taille des paquets", "longueur de trame"),
        ),
        "frame rate": (
            *("Rahmenrate", "Framerate", "Paketrate", "Durchsatz", "Durchsatzrate"),
            *("débit", "débit de trames", "taux de trames"),
        ),
        "throughput": ("Durchsatz", "débit"),
        "load": ("Last", "angebotene Last", "charge", "charge offerte"),
        "loss": ("Verlust", "Paketverlust", "Rahmenverlust", "Verlustrate", "perte", "pertes", "perte de trames"),
        "line rate": ("Leitungsrate", "débit de ligne"),
        "% of line rate": (
            *("Anteil Linerate", "Anteil der Linerate", "Anteil Leitungsrate", "Anteil der Leitungsrate"),
            "% der Leitungsrate",
            "% der Linerate",
            "% der Line-Rate",
            "% du débit de ligne",
        ),
        "minimum latency": ("minimale Latenz", "Latenz minimal", "Latenz min", "latence minimale", "latence min"),
        "average latency": (
            *("Latenz", "mittlere Latenz", "durchschnittliche Latenz", "Latenz Mittelwert", "Latenz Mittel"),
            *("latence", "latence moyenne", "latence moy"),
        ),
        "maximum latency": ("maximale Latenz", "Latenz maximal", "Latenz max", "latence maximale", "latence max"),
        "offered frames": ("gesendete Rahmen", "gesendete Frames", "gesendete Pakete", "trames émises"),
        "returned frames": ("empfangene Rahmen", "empfangene Frames", "empfangene Pakete", "trames reçues"),
        "lost frames": ("verlorene Rahmen", "verlorene Frames", "verlorene Pakete", "trames perdues"),
    }
)
_BASES: Final = MappingProxyType(
    {
        **dict.fromkeys(("linerate", "line-rate", "leitungsrate", "débit de ligne", "ligne"), "line rate"),
        **dict.fromkeys(("durchsatzes", "durchsatz", "débit"), "throughput"),
    }
)
DEVICES: Final = frozenset({"karte", "netzwerkkarte", "gerat", "modell", "prufling", "carte", "appareil", "modele"})
"""Words of a heading whose column names what was measured, without their accents."""


def names_abroad(name: str) -> tuple[str, ...]:
    """Returns what a column of this name is called in other languages."""
    return _ABROAD.get(name, ())


def in_english(basis: str) -> str:
    """Returns what a percentage is of, in English: "line rate" of "Linerate"."""
    small = basis.strip().lower()
    return _BASES.get(small, small)
