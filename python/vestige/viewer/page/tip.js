// The small box next to the pointer.

export class Tip {
  constructor(element) {
    this.element = element;
  }

  /** content: {title, lines} or null to hide. */
  show(content, event) {
    this.element.hidden = !content;
    if (!content) return;
    const title = document.createElement("b");
    title.textContent = content.title;
    const lines = content.lines.filter(Boolean).map((text) => {
      const line = document.createElement("div");
      line.textContent = text;
      return line;
    });
    this.element.replaceChildren(title, ...lines);
    const { offsetWidth: wide, offsetHeight: tall } = this.element;
    const x = Math.min(event.clientX + 14, window.innerWidth - wide - 6);
    const below = event.clientY + 18;
    const y = below + tall > window.innerHeight - 6 ? event.clientY - tall - 10 : below;
    this.element.style.transform = `translate(${Math.max(x, 4)}px, ${Math.max(y, 4)}px)`;
  }
}
