// Plays a world in time: start, pause, speed, and which moment was on screen when.

// A longer gap between two pictures means a hidden tab or a pause of the browser. Playing
// goes on from there, because nobody saw what would have been shown meanwhile.
const LONGEST_GAP_MS = 250;

export class Player {
  /** `draw(moment)` is called for every picture, `ended()` after the last one. */
  constructor(stepMs, draw, ended) {
    this.stepMs = stepMs;
    this.draw = draw;
    this.ended = ended;
    this.speed = 1;
    this.moment = 0;
    this.end = () => 0;
    this.running = false;
    this.lastFrame = 0;
    this.tick = this.tick.bind(this);
  }

  start(end, moment = 0) {
    this.end = end;
    this.moment = moment;
    this.resume();
  }

  resume() {
    if (this.running) return;
    this.running = true;
    this.lastFrame = performance.now();
    requestAnimationFrame(this.tick);
  }

  pause() {
    this.running = false;
  }

  tick(now) {
    if (!this.running) return;
    const gap = Math.min(Math.max(now - this.lastFrame, 0), LONGEST_GAP_MS);
    this.lastFrame = now;
    this.moment += (gap * this.speed) / this.stepMs;
    if (this.moment >= this.end()) {
      this.moment = this.end();
      this.running = false;
      this.draw(this.moment);
      this.ended();
      return;
    }
    this.draw(this.moment);
    requestAnimationFrame(this.tick);
  }

  /** The step on screen when an event happened, and for how long it had been. */
  at(event) {
    const since = this.running ? Math.max(0, event.timeStamp - this.lastFrame) : 0;
    const more = (Math.min(since, 50) * this.speed) / this.stepMs;
    const moment = Math.min(this.moment + more, this.end());
    const step = Math.floor(moment);
    const latency = ((moment - step) * this.stepMs) / this.speed;
    return { moment, step, latency_ms: Math.round(latency) };
  }
}
