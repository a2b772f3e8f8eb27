import { type Peers, PeerUnreachable } from './peers.ts';

/** A node that stands alone has nobody to ask. */
export const noPeers: Peers = {
  ask: async (node) => {
    throw new PeerUnreachable(`this node stands alone and was asked to reach ${node}`, false);
  },
};
