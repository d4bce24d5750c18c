"""Tables with named columns: delimited text, Parquet and Arrow to arrays, and back."""
