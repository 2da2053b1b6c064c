"""Testers, one kind a file, chosen by ``tester: {kind: ...}``: they send frames and count those that come back."""
