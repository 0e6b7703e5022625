-- The health of all kinds of forgeplane.dev, from their conditions Ready, Reconciling and Stalled.
local hs = { status = "Progressing", message = "Forgeplane has not seen this declaration yet" }

local status = obj.status or {}
local ready, stalled
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Ready" then
    ready = condition
  elseif condition.type == "Stalled" and condition.status == "True" then
    stalled = condition
  end
end

local deleting = obj.metadata.deletionTimestamp ~= nil
if ready == nil or (status.observedGeneration ~= obj.metadata.generation and not deleting) then
  return hs
end

hs.message = ready.message
if ready.message == nil or ready.message == "" then
  hs.message = ready.reason
end
if deleting then
  if ready.reason ~= "Deleting" then
    hs.message = "deleting"
  end
elseif stalled ~= nil then
  hs.status = "Degraded"
elseif ready.status == "True" then
  hs.status = "Healthy"
  if ready.reason == "Suspended" then
    hs.status = "Suspended"
  end
end
return hs
