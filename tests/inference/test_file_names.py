"""Names of model files in the lists of model servers."""

from svc.inference.file_names import file_of, is_file, path_to


def test_only_the_path_of_one_model_file_has_a_name() -> None:
    assert file_of("/models/a.gguf") == file_of("C:\\x\\a.gguf") == file_of("~/a.gguf") == "a.gguf"
    assert [file_of(name) for name in ("a.gguf", "org/a.gguf", "/models/a.bin", "/models/")] == [None] * 4
    assert is_file("a.gguf") and not is_file("/a.gguf") and not is_file("a")


def test_name_of_two_files_is_that_of_none() -> None:
    assert path_to("a.gguf", ["/x/a.gguf", "/x/b.gguf"]) == "/x/a.gguf"
    assert path_to("a.gguf", ["/x/a.gguf", "/y/a.gguf"]) is None
