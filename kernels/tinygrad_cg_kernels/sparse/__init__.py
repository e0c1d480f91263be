"""Sets of indices in compressed rows: unions, products, transposes."""
