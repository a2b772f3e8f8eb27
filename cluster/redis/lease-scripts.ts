/** Each script is one step at Redis. A lease is a hash of owner and token that expires; an empty token keeps the shard for its owner, the heir. */

/** The owner and token of a lease. What is kept for an heir that is no member any more is kept for nobody. */
const ownerOf = `
local function isGone(members, id)
  local standing = redis.call('HGET', members, id)
  local time = redis.call('TIME')
  return not standing or tonumber(string.match(standing, '^%d+')) <= time[1] * 1000 + math.floor(time[2] / 1000)
end
local function ownerOf(lease, members)
  local standing = redis.call('HMGET', lease, 'owner', 'token')
  local owner, token = standing[1], standing[2]
  if owner and token == '' and isGone(members, owner) then return false, false end
  return owner, token
end`;

/** KEYS: the lease, the members. ARGV: owner, token, ttl. Answers {1, owner} or {0, owner}. */
export const acquireLease = `${ownerOf}
local owner, token = ownerOf(KEYS[1], KEYS[2])
if owner and token ~= ARGV[2] and not (token == '' and owner == ARGV[1]) then return {0, owner} end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'token', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, ARGV[1]}`;

/** KEYS: leases. ARGV: ttl, and the token of each. Answers 1 or 0 for each. */
export const renewLeases = `
local renewed = {}
for at, key in ipairs(KEYS) do
  if redis.call('HGET', key, 'token') == ARGV[at + 1] then
    redis.call('PEXPIRE', key, ARGV[1])
    renewed[at] = 1
  else
    renewed[at] = 0
  end
end
return renewed`;

/** KEYS: the lease. ARGV: token, heir (or empty), how long it is kept for the heir. */
export const releaseLease = `
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'owner', ARGV[2], 'token', '')
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1`;

/** KEYS: the members, leases. Answers the owner of each lease, empty where there is none. */
export const leaseOwners = `${ownerOf}
local owners = {}
for at = 2, #KEYS do owners[at - 1] = ownerOf(KEYS[at], KEYS[1]) or '' end
return owners`;

/** Whether what stands under an id is of another run than that of ARGV[2] (its start) and ARGV[3] (its address). What is no announcement is of none. */
const isOfAnother = `
local function isOfAnother(standing)
  local isRead, run = pcall(cjson.decode, string.sub(standing, string.find(standing, '|', 1, true) + 1))
  return isRead and (run.startedAt ~= ARGV[2] or run.address ~= ARGV[3])
end`;

/**
 * KEYS: the members. ARGV: id, start, address, ttl, announcement. Changes nothing while another run is seen under the id. One that would be
 * seen for longer than a ttl was announced before the clock went back, and may be long dead: one that lives announces itself anew.
 */
export const announceMember = `${isOfAnother}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local untilNext = now + ARGV[4]
local standing = redis.call('HGET', KEYS[1], ARGV[1])
local untilStanding = standing and tonumber(string.match(standing, '^%d+')) or 0
if untilStanding > now and untilStanding <= untilNext and isOfAnother(standing) then return 0 end
return redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', untilNext) .. '|' .. ARGV[5])`;

/** KEYS: the members. ARGV: id, start, address. */
export const withdrawMember = `${isOfAnother}
local standing = redis.call('HGET', KEYS[1], ARGV[1])
if not standing or isOfAnother(standing) then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])`;

/** KEYS: members, orders. Forgets who was not heard of. Answers id, announcement and order of each, one after the other. */
export const listMembers = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all = redis.call('HGETALL', KEYS[1])
local listed = {}
for at = 1, #all, 2 do
  local cut = string.find(all[at + 1], '|', 1, true)
  if tonumber(string.sub(all[at + 1], 1, cut - 1)) > now then
    listed[#listed + 1] = all[at]
    listed[#listed + 1] = string.sub(all[at + 1], cut + 1)
    listed[#listed + 1] = redis.call('HGET', KEYS[2], all[at]) or ''
  else
    redis.call('HDEL', KEYS[1], all[at])
  end
end
return listed`;
