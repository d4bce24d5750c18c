"""Data sets in Parquet files that memory need not hold: opened, read a part at a time, and written."""
