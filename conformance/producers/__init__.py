"""Producers as subjects: what they are asked, what they owe, and how they are judged."""

from logitsproc.conformance.producers.interface import Coming, Producer, Schedule

__all__ = ["Coming", "Producer", "Schedule"]
