// One end of a link between two programs: what one end sends, the other receives once and in order, over connections that
// may break and be made again. It keeps what the other end has not confirmed yet; it has no timer and no I/O.

/** What travels over a connection: a message with its number, or a confirmation alone. */
export interface Frame<Message> {
  /** The number of the message, from 1; 0 without one. */
  readonly seq: number;
  /** The sender has received all messages up to this number. */
  readonly received: number;
  readonly message?: Message;
}

/** What came over a connection cannot be right: it is to be closed, and what was sent comes over the next one. */
export class WrongFrame extends Error {}

export interface LinkParts<In> {
  /** Called once for each message of the other end, in order. */
  readonly receive: (message: In) => void;
  /** Called when the other end has confirmed more of what was sent. */
  readonly confirmed?: () => void;
}

/** Messages that are received before they are confirmed without one to send along. */
const UNCONFIRMED_MAX = 32;

export class Link<Out, In> {
  readonly #parts: LinkParts<In>;
  #write: ((frame: Frame<Out>) => void) | null = null;
  /** The messages that the other end has not confirmed; the first one has the number `#confirmed + 1`. */
  #unconfirmed: Out[] = [];
  #confirmed = 0;
  #received = 0;
  #receivedUntold = 0;

  constructor(parts: LinkParts<In>) {
    this.#parts = parts;
  }

  /** How many messages of the other end have been received. */
  get received(): number {
    return this.#received;
  }

  /** Messages that the other end has not confirmed. */
  get waiting(): number {
    return this.#unconfirmed.length;
  }

  /** Sends a message; over the next connection while there is none. */
  send(message: Out): void {
    this.#unconfirmed.push(message);
    this.#writeAt(this.#confirmed + this.#unconfirmed.length);
  }

  /**
   * A connection is there; the one before is not used any more.
   *
   * @param write hands a frame to it
   * @param peerReceived how many messages the other end says that it has received
   * @throws WrongFrame when the other end speaks of messages that were never sent, or has lost some
   */
  connected(write: (frame: Frame<Out>) => void, peerReceived: number): void {
    this.#confirm(peerReceived);
    this.#write = write;
    for (let seq = this.#confirmed + 1; seq <= this.#confirmed + this.#unconfirmed.length; seq++) {
      this.#writeAt(seq);
    }
  }

  disconnected(): void {
    this.#write = null;
  }

  /**
   * A frame came over the connection.
   *
   * @throws WrongFrame when it does not follow the one before: the connection is to be closed
   */
  frame({ seq, received, message }: Frame<In>): void {
    this.#confirm(received);
    if (seq === 0 || message === undefined) return;
    if (seq !== this.#received + 1) {
      throw new WrongFrame(`message ${seq} came after message ${this.#received}`);
    }
    this.#received = seq;
    if (++this.#receivedUntold >= UNCONFIRMED_MAX) this.confirmReceived();
    this.#parts.receive(message);
  }

  /** Tells the other end what has been received; to be called now and then when nothing else is sent. */
  confirmReceived(): void {
    if (this.#receivedUntold === 0 || this.#write === null) return;
    this.#receivedUntold = 0;
    this.#write({ seq: 0, received: this.#received });
  }

  #writeAt(seq: number): void {
    if (this.#write === null) return;
    this.#receivedUntold = 0;
    const message = this.#unconfirmed[seq - this.#confirmed - 1]!;
    this.#write({ seq, received: this.#received, message });
  }

  #confirm(received: number): void {
    const sent = this.#confirmed + this.#unconfirmed.length;
    if (!Number.isSafeInteger(received) || received < this.#confirmed || received > sent) {
      throw new WrongFrame(`${received} messages are confirmed, of ${this.#confirmed} to ${sent}`);
    }
    if (received === this.#confirmed) return;
    this.#unconfirmed = this.#unconfirmed.slice(received - this.#confirmed);
    this.#confirmed = received;
    this.#parts.confirmed?.();
  }
}
