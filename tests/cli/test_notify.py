"""`sm notify test`: what it says of a configuration that is not used."""


async def test_a_file_that_is_rejected_is_not_tested(desk):
    (desk.root / "config.toml").write_text("[notify]\nkinds = 3\n")
    ran = await desk.run("notify", "test")
    words, hint = ran.err.splitlines()
    assert (ran.code, ran.out) == (1, "")
    assert words.startswith("Error: The configuration is rejected, and the server uses the last good one: ")
    assert "notify.kinds" in words
    assert hint.startswith("hint: ")
