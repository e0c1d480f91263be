from .ops.elementwise import log
