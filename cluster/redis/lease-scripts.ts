import { membersMax } from '../placement/members.ts';
import { nodeIdCharactersMax } from '../placement/node-id.ts';

/**
 * Lua scripts. Each runs atomically in Redis. A lease is a hash of owner and token that expires. An empty token means
 * that the shard is kept for its owner, the heir.
 *
 * No value makes a script fail, so that a bad key blocks nothing. A value that no node can have written counts as
 * absent: scripts that read report it, scripts that write replace it.
 */

/** The largest LEASE_TTL_MS. No node writes a lease or announcement that is valid for longer. */
export const countsForMaxMs = 600_000;
/**
 * Up to this many entries of `members:` a script goes over, so that what is no member takes the place of none: the
 * largest cluster has twice its members there once all nodes have started again under new ids. The bound keeps an
 * attacker's entries from holding Redis up.
 */
const entriesMax = 4 * membersMax;
/** No node writes longer values. */
const announcementBytesMax = 4_096;
const tokenCharactersMax = 128;
const orderCharactersMax = 128;

/**
 * fieldOf returns a field of a hash, and whether it holds a bad value: it is longer than `max`, or the key is no hash.
 * It asks for the length first, since Redis copies what a script reads.
 */
const fieldOf = `
local function fieldOf(key, field, max)
  local length = redis.pcall('HSTRLEN', key, field)
  if type(length) ~= 'number' or length > max then return nil, true end
  return redis.call('HGET', key, field) or nil, false
end`;

/** isNodeId is the same rule as `isNodeId` in cluster/placement/node-id.ts. */
const isNodeId = `
local function isNodeId(id)
  return #id <= ${nodeIdCharactersMax} and string.find(id, '^[A-Za-z0-9._-]+$') ~= nil
end`;

/** untilOf returns until when an announcement is valid, by the clock of Redis (ms). nil: it is no announcement. */
const untilOf = `${fieldOf}
local function untilOf(stored)
  return stored and tonumber(string.match(stored, '^(%d+)|'))
end
local function announcementOf(members, id)
  local stored = fieldOf(members, id, ${announcementBytesMax})
  return stored
end`;

/**
 * membersIn returns how many entries `members:` has, and whether it removed bad ones. If they are more than a cluster
 * has members, it first removes those that have run out, and those that no node can have written.
 */
const membersIn = `${untilOf}${isNodeId}
local function membersIn(members, now)
  local count = redis.pcall('HLEN', members)
  if type(count) ~= 'number' or count <= ${membersMax} or count > ${entriesMax} then return count, false end
  local areBad = false
  for _, id in ipairs(redis.call('HKEYS', members)) do
    local untilThen = isNodeId(id) and untilOf(announcementOf(members, id))
    local isBad = not untilThen or untilThen > now + ${countsForMaxMs}
    areBad = areBad or isBad
    if isBad or untilThen <= now then redis.call('HDEL', members, id) end
  end
  return redis.call('HLEN', members), areBad
end`;

/**
 * ownerOf returns the owner and token of a lease, and whether the key holds a bad value. A lease for an heir that is no
 * member any more counts as absent.
 */
const ownerOf = `${untilOf}${isNodeId}
local function isGone(members, id)
  local time = redis.call('TIME')
  return (untilOf(announcementOf(members, id)) or 0) <= time[1] * 1000 + math.floor(time[2] / 1000)
end
local function ownerOf(lease, members)
  -- As fieldOf does it, with one call less: this runs for each shard.
  local ownerLength = redis.pcall('HSTRLEN', lease, 'owner')
  if type(ownerLength) ~= 'number' or ownerLength > ${nodeIdCharactersMax} then return false, false, true end
  if redis.call('HSTRLEN', lease, 'token') > ${tokenCharactersMax} then return false, false, true end
  local fields = redis.call('HMGET', lease, 'owner', 'token')
  local owner, token = fields[1], fields[2]
  if not owner and not token then return false, false, false end
  local ttl = redis.call('PTTL', lease)
  if not owner or not token or not isNodeId(owner) or ttl < 0 or ttl > ${countsForMaxMs} then return false, false, true end
  if token == '' and isGone(members, owner) then return false, false, false end
  return owner, token, false
end`;

/** KEYS: the lease, the members. ARGV: owner, token, ttl (ms). Returns {1, owner} if it was taken, else {0, owner}. */
export const acquireLease = `${ownerOf}
local owner, token, isBad = ownerOf(KEYS[1], KEYS[2])
if owner and token ~= ARGV[2] and not (token == '' and owner == ARGV[1]) then return {0, owner} end
if isBad then redis.call('UNLINK', KEYS[1]) end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'token', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, ARGV[1]}`;

/** KEYS: leases. ARGV: ttl (ms), then the token of each lease. Returns for each lease 1 if it was renewed, else 0. */
export const renewLeases = `${fieldOf}
local renewed = {}
for at, key in ipairs(KEYS) do
  if fieldOf(key, 'token', ${tokenCharactersMax}) == ARGV[at + 1] then
    redis.call('PEXPIRE', key, ARGV[1])
    renewed[at] = 1
  else
    renewed[at] = 0
  end
end
return renewed`;

/**
 * KEYS: the lease. ARGV: token, heir (empty: none), how long the heir may take it (ms). Returns 1 if it was released.
 */
export const releaseLease = `${fieldOf}
if fieldOf(KEYS[1], 'token', ${tokenCharactersMax}) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'owner', ARGV[2], 'token', '')
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1`;

/** KEYS: the members, then leases. Returns for each lease its owner, '' if there is none, or 0 for a bad value. */
export const leaseOwners = `${ownerOf}
local owners = {}
for at = 2, #KEYS do
  local owner, token, isBad = ownerOf(KEYS[at], KEYS[1])
  owners[at - 1] = isBad and 0 or owner or ''
end
return owners`;

/**
 * isOfAnother returns whether a value is the announcement of a run with another start (ARGV[2]) or address (ARGV[3]).
 */
const isOfAnother = `
local function isOfAnother(stored)
  if not untilOf(stored) then return false end
  local isRead, run = pcall(cjson.decode, string.sub(stored, string.find(stored, '|', 1, true) + 1))
  return isRead and type(run) == 'table' and (run.startedAt ~= ARGV[2] or run.address ~= ARGV[3])
end`;

/**
 * KEYS: the members. ARGV: id, start, address, ttl (ms), announcement, until when the run has held its id (ms; 0: it
 * has not). Changes nothing while another run is announced under the id, unless this run holds it still: then no node
 * has written that. Replaces an announcement that is valid for longer than a ttl: it is from before the clock of Redis
 * went back, and a run that is alive announces itself again. More members than a cluster may have are all replaced, if
 * they are no fewer without those that are none.
 * Returns until when the run is announced (0: it is not), and 1 if it has replaced what no node has written.
 */
export const announceMember = `${membersIn}${isOfAnother}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local untilNext = now + ARGV[4]
local heldUntil = tonumber(ARGV[6])
local isHeld = now < heldUntil and heldUntil <= untilNext
local stored = announcementOf(KEYS[1], ARGV[1])
local untilStored = untilOf(stored) or 0
local isTaken = untilStored > now and untilStored <= untilNext and isOfAnother(stored)
if isTaken and not isHeld then return {0, 0} end
local count = membersIn(KEYS[1], now)
if type(count) ~= 'number' or count > ${membersMax} then redis.call('UNLINK', KEYS[1]) end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', untilNext) .. '|' .. ARGV[5])
return {untilNext, isTaken and 1 or 0}`;

/** Removes the announcement of one run. KEYS: the members. ARGV: id, start, address. */
export const withdrawMember = `${untilOf}${isOfAnother}
local stored = announcementOf(KEYS[1], ARGV[1])
if not stored or isOfAnother(stored) then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])`;

/**
 * KEYS: members, orders. Removes members whose announcement has run out, and those whose id no node can have, which
 * nobody would replace. Returns a list of id, announcement and order of each member. An empty announcement: the value
 * is bad. An empty id: the key that the order names is no hash. Of more members than a cluster may have it returns
 * their number alone.
 */
export const listMembers = `${membersIn}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local listed = {}
local function add(id, announcement, order)
  listed[#listed + 1] = id
  listed[#listed + 1] = announcement
  listed[#listed + 1] = order
end
local count, wereBad = membersIn(KEYS[1], now)
local ids = {}
if type(count) ~= 'number' then
  add('', '', 'members')
elseif count > ${membersMax} then
  return {count}
else
  ids = redis.call('HKEYS', KEYS[1])
  if wereBad then add('', '', 'members') end
end
-- There are hardly ever any, and each member's costs two calls.
local orderCount = redis.pcall('HLEN', KEYS[2])
if type(orderCount) ~= 'number' then
  add('', '', 'orders')
  orderCount = 0
end
for _, id in ipairs(ids) do
  local stored = announcementOf(KEYS[1], id)
  local untilThen = untilOf(stored)
  if not isNodeId(id) then
    redis.call('HDEL', KEYS[1], id)
    add(string.sub(id, 1, ${nodeIdCharactersMax}), '', '')
  elseif not untilThen or untilThen > now + ${countsForMaxMs} then
    add(id, '', '')
  elseif untilThen > now then
    local order, isBad = '', false
    if orderCount > 0 then order, isBad = fieldOf(KEYS[2], id, ${orderCharactersMax}) end
    add(id, string.sub(stored, string.find(stored, '|', 1, true) + 1), isBad and 'bad' or order or '')
  else
    redis.call('HDEL', KEYS[1], id)
  end
end
return listed`;
