"""Words of a question that say how it asks and not what about: they find nothing, or everything.

They are left out of queries only, never out of the index, so a query of nothing else still works.
Of other languages than these, how rare a word is in the history has to do.
"""

from __future__ import annotations

import re

ENGLISH = frozenset(
    """
    a an the and or but nor so yet of to in on at for with by from into onto about over under
    between through during is was were are be been being am do does did done doing has have had
    having will would shall should can could might must i me my mine we us our ours you your yours
    he him his she her hers it its they them their theirs this that these those there here what when
    where which who whom whose why how if then than as not no yes any some all both each such other
    s t re ve ll d m don didn doesn isn wasn kind type many much long please
    """.split()
)
"""Compared in small letters; a word in capitals (`IT`, `WHO`) is a name and stays."""

DENSE = re.compile(
    "为什么|什么样|什么|怎么样|怎么|怎样|如何|哪里|哪儿|哪个|哪些|哪家|哪|多少|几个|是不是|有没有|"
    "能不能|能否|请问|一下|何时|谁|吗|呢|啊|的|是|了|"
    "為什麼|什麼|怎麼樣|怎麼|哪裡|哪個|多少|嗎|誰|請問|"
    "でしたか|でした|ですか|です|ましたか|ました|ますか|ます|ください|どうして|どんな|どこ|どの|いつ|"
    "だれ|なぜ|何|誰|무엇|무슨|어디|언제|누구|어떻게|얼마"
)
"""Chinese, Japanese and Korean, which put no space between them and what is asked about."""
