"""Pictures: what tapes have recorded, and curves of derivatives."""
