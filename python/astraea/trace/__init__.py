"""Traces of delivery opportunities: generating, describing and converting them."""
