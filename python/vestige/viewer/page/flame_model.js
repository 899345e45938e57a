// The trees that flame graphs draw, made of the rows of a table: the calls of several traces as one tree, the table of
// functions, the callers and callees of one function, and the positions of boxes. A node has its function, parent,
// children and value; its width is proportional to the value. Nothing is drawn here.

function makeNode(one, parent) {
  return { one, parent, children: new Map(), self: 0, total: 0, count: 0, bytes: 0, value: 0 };
}

function childOf(node, one) {
  let child = node.children.get(one.index);
  if (!child) node.children.set(one.index, (child = makeNode(one, node)));
  return child;
}

export function makeRoot() {
  return makeNode(null, null);
}

/**
 * Adds the rows of a table to a tree. Returns the node of each row.
 * @param {number[]} parents the parent of each row: an earlier row, or -1
 * @param {(row: number) => {index: number}} one the function of a row; rows with one index below one parent share a node
 * @param {(node: any, row: number) => void} add adds the row's numbers to the node
 */
export function addRows(root, parents, one, add) {
  const nodes = [];
  parents.forEach((parent, row) => {
    nodes.push(childOf(parent < 0 ? root : nodes[parent], one(row)));
    add(nodes[row], row);
  });
  return nodes;
}

/** Builds a tree from `answers`: [{trace, rows}] as the source gives them, rows by column. */
export function buildTree(answers, names) {
  const root = makeRoot();
  for (const { trace, rows } of answers) {
    addRows(root, rows.parent, (row) => names.get(trace, rows.id[row]), (node, row) => {
      node.count += rows.calls[row];
      node.self += rows.self_ns[row];
      node.total += rows.total_ns[row];
      node.bytes += rows.self_bytes[row];
      if (node.parent === root) root.total += rows.total_ns[row];
    });
  }
  return root;
}

const OWN = { time: (node) => node.self, count: (node) => node.count, bytes: (node) => node.bytes };

/** Sets each node's value: the weight of the node and everything below it. */
export function weigh(root, weight) {
  return addUp(root, OWN[weight]);
}

/** Sets each node's value to the sum of `own` over the node and everything below it. */
export function addUp(root, own) {
  const order = [root];
  for (let at = 0; at < order.length; at++) for (const child of order[at].children.values()) order.push(child);
  for (let at = order.length - 1; at >= 0; at--) {
    const node = order[at];
    node.own = node.one ? Math.max(0, own(node)) : 0;
    node.value = node.own;
    for (const child of node.children.values()) node.value += child.value;
  }
  return root;
}

/**
 * Returns each function with its own weight, total weight (recursion counts once) and calls; the heaviest first. Call
 * weigh() before.
 */
export function listFunctions(root) {
  const found = new Map();
  const open = new Map();
  const stack = [[root, false]];
  for (let next; (next = stack.pop()); ) {
    const [node, leaving] = next;
    const key = node.one?.index;
    if (leaving) {
      open.set(key, open.get(key) - 1);
      continue;
    }
    if (node.one) {
      let row = found.get(key);
      if (!row) found.set(key, (row = { one: node.one, self: 0, total: 0, count: 0 }));
      row.self += node.own;
      row.count += node.count;
      if (!open.get(key)) row.total += node.value;
      open.set(key, (open.get(key) ?? 0) + 1);
      stack.push([node, true]);
    }
    for (const child of node.children.values()) stack.push([child, false]);
  }
  return [...found.values()].sort((a, b) => b.self - a.self);
}

/** Returns the matching nodes that are not inside another matching node. */
function outermost(root, matches) {
  const found = [];
  const stack = [root];
  while (stack.length) {
    const node = stack.pop();
    if (node.one && matches(node.one)) found.push(node);
    else stack.push(...node.children.values());
  }
  return found;
}

/** Returns the total value inside the matching nodes. */
export function valueOf(root, matches) {
  return outermost(root, matches).reduce((sum, node) => sum + node.value, 0);
}

/** Returns a tree that begins at a function and goes to its callers. Call weigh() before. */
export function callersOf(root, one) {
  const tree = makeNode(one, null);
  for (const node of outermost(root, (other) => other === one)) {
    let place = tree;
    place.value += node.value;
    place.count += node.count;
    for (let above = node.parent; above?.one; above = above.parent) {
      place = childOf(place, above.one);
      place.value += node.value;
      place.count += node.count;
    }
    place.own = (place.own ?? 0) + node.value;
  }
  return tree;
}

/** Returns a tree of all calls that a function makes. Call weigh() before. */
export function calleesOf(root, one) {
  const tree = makeNode(one, null);
  const stack = outermost(root, (other) => other === one).map((node) => [node, tree]);
  for (let next; (next = stack.pop()); ) {
    const [from, into] = next;
    into.value += from.value;
    into.own = (into.own ?? 0) + from.own;
    into.count += from.count;
    for (const child of from.children.values()) stack.push([child, childOf(into, child.one)]);
  }
  return tree;
}

/**
 * Returns boxes of a tree between two x: [{node, x, width, level}], the heaviest child first. Leaves thin boxes out.
 */
export function layOut(root, x, width, least) {
  const boxes = [];
  const stack = [[root, x, width, 0]];
  for (let next; (next = stack.pop()); ) {
    const [node, left, wide, level] = next;
    boxes.push({ node, x: left, width: wide, level });
    if (!node.value) continue;
    let at = left;
    const children = [...node.children.values()].sort((a, b) => b.value - a.value);
    for (const child of children) {
      const part = (child.value / node.value) * wide;
      if (part < least) break;
      stack.push([child, at, part, level + 1]);
      at += part;
    }
  }
  return boxes;
}
