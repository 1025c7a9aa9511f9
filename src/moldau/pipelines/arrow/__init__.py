"""Record batches to Arrow columns and back, without an object per record."""
