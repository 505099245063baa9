"""Write the expectations of all golden files anew."""

from tests.golden.harness import cases, expected_file, golden

for case in cases():
    text = golden(case)
    file = expected_file(case)
    changed = not file.exists() or file.read_text(encoding="utf-8") != text
    file.write_text(text, encoding="utf-8")
    print(f"{'written  ' if changed else 'unchanged'}  {case}")
