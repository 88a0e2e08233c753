import pytest

from termdp.extras import needs


def test_a_missing_package_is_named_with_its_extra():
    @needs("maps", "no_such_package")
    def load():
        import no_such_package.inside  # noqa: F401

    with pytest.raises(
        ValueError, match=r"no_such_package.*pip install 'termdp\[maps\]'"
    ):
        load()


def test_packages_of_others_are_not_explained_away():
    with pytest.raises(ModuleNotFoundError), needs("maps", "another"):
        import no_such_package  # noqa: F401
