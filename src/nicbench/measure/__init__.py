"""From a method's request to a journaled record: trials and rounds made, accounted for, judged and repeated."""
