export const nodeIdCharactersMax = 128;

export const nodeIdForm = new RegExp(`^[A-Za-z0-9._-]{1,${nodeIdCharactersMax}}$`);

/** Whether a text can be a NODE_ID. The scripts for Redis have the same rule (cluster/redis/lease-scripts.ts). */
export function isNodeId(text: string): boolean {
  return nodeIdForm.test(text);
}
