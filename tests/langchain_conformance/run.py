from langchain_conformance import settings
from langchain_conformance.behaviour import BEHAVIOURS, THEIRS, OURS
import sys
for m in sys.argv[1:]: __import__("langchain_conformance."+m)
import traceback
for b in BEHAVIOURS:
    try: t=b.observe(THEIRS)
    except Exception as e: t="CRASH %r"%e; traceback.print_exc()
    try: o=b.observe(OURS)
    except Exception as e: o="CRASH %r"%e; traceback.print_exc()
    same=b.same(t,o)
    if "CRASH" in str(t)+str(o) or same != (not b.differs): print("XX", b.section,"|",b.name,"\n    T",t,"\n    O",o)
    else: print("ok", b.section, "|", b.name, "|", str(t)[:110], "" if same else "|| "+str(o)[:110])
