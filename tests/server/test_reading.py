"""Reading in the background. tests/routes/test_project_files.py tests it through HTTP."""

from tests.conftest import Service
from tests.routes.test_project_files import TRAIN, add, artifact, project_of


async def test_files_of_accounts_are_read_beside_each_other(service: Service) -> None:
    for _ in range(3):
        headers = await service.bearer()
        project_id = await project_of(service, headers)
        for _ in range(2):
            file = await add(service, headers, project_id, await artifact(service, headers, TRAIN.encode()))
            assert file["status"] == "ready"
