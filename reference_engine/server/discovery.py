"""openengine.v1.OpenEngineDiscovery, and the GetModelInfo that Control shares with it."""

from typing import Any, TypeAlias

import grpc

from oe_wire import v1
from reference_engine.server.deployment import Deployment
from reference_engine.server.description import capabilities, engine_info, model_info
from reference_engine.server.rejection import invalid, model_not_found, refuse
from reference_engine.server.revisions import Revisions

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


async def get_model_info(
    deployment: Deployment, request: v1.GetModelInfoRequest, context: Context
) -> v1.ModelInfo:
    """Describe the named model; empty and unknown names are refused."""
    if not request.model:
        await refuse(context, invalid("model is empty, expected the name of a served model"))
    if request.model not in deployment.model.names:
        await refuse(context, model_not_found("model"))
    return model_info(deployment)


class DiscoveryServicer:
    """Answers from the deployment in force alone: no inference, no load."""

    def __init__(self, revisions: Revisions) -> None:
        self._revisions = revisions

    @property
    def _deployment(self) -> Deployment:
        return self._revisions.current

    async def GetEngineInfo(
        self, _request: v1.GetEngineInfoRequest, _context: Context
    ) -> v1.EngineInfo:
        """Identity, capacity and where the services are."""
        return engine_info(self._deployment)

    async def GetModelInfo(self, request: v1.GetModelInfoRequest, context: Context) -> v1.ModelInfo:
        """The same as Control.GetModelInfo."""
        return await get_model_info(self._deployment, request, context)

    async def GetCapabilities(
        self, request: v1.GetCapabilitiesRequest, context: Context
    ) -> v1.Capabilities:
        """Profiles and limits of the engine, or of one model."""
        if request.model and request.model not in self._deployment.model.names:
            await refuse(context, model_not_found("model"))
        return capabilities(self._deployment, request.model)
